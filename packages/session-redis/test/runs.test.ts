import { Agent, jsonSchema, tool } from '@agents/core';
import type { OutputGuardrail } from '@agents/core';
import { OpenAIResponsesModel } from '@agents/core/openai';
import { bothForms, FakeOpenAI, ScriptedModel, toolCall } from '@agents/core/testing';
import { checkCandidatesBesideOthers, checkCompactionBesideOthers } from '@agents/testkit/compaction';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

const user = (content: string) => ({ role: 'user', content }) as const;
const users = (...contents: readonly string[]) => contents.map(user);
const empty = jsonSchema({ type: 'object', properties: {}, required: [], additionalProperties: false });

let keyPrefix: string;
let session: RedisSession;
beforeEach(() => {
  keyPrefix = freshPrefix();
  session = new RedisSession('s', { client: redis, keyPrefix });
});

const kinds = async (): Promise<string[]> =>
  (await session.getItems()).map((item) =>
    'type' in item && item.type ? item.type : String((item as { role?: string }).role),
  );
const rejection = async (work: Promise<unknown>): Promise<Error> =>
  (await work.then(
    () => undefined,
    (error: unknown) => error,
  )) as Error;

bothForms((runForm, form) => {
  describe(`a run on Redis (${form})`, () => {
    const look = tool({ name: 'look', description: 'Looks.', parameters: empty, execute: () => 'secret' });
    const blocks: OutputGuardrail = { name: 'no', execute: () => ({ tripwireTriggered: true }) };

    it('stores of a blocked output of a tool the call and a withheld output: the text is nowhere in the store [SESS#19, SESS-087]', async () => {
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[toolCall('look', {}, { callId: 'c1' })]]),
        tools: [look],
        toolUseBehavior: 'stop_on_first_tool',
        outputGuardrails: [blocks],
      });
      await rejection(runForm(agent, 'x', { session }));
      expect(await kinds()).toEqual(['user', 'function_call', 'function_call_output']);
      const keys = await redis.keys(`${keyPrefix}*`);
      const stored = await Promise.all(keys.map((key) => redis.dump(key)));
      expect(stored.join('\n')).not.toContain('secret');
      expect(stored.join('\n')).toContain('withheld');
    });

    it('keeps the final turn when a guardrail throws; if that write fails, its error has the one of the guardrail as cause [SESS-087]', async () => {
      const failure = new Error('no verdict');
      const throws: OutputGuardrail = {
        name: 'bad',
        execute: () => {
          throw failure;
        },
      };
      const agent = () => new Agent({ name: 'A', model: new ScriptedModel(['done']), outputGuardrails: [throws] });
      expect(await rejection(runForm(agent(), 'x', { session }))).toBe(failure);
      expect(await kinds()).toEqual(['user', 'message']);
      const spoils: OutputGuardrail = {
        name: 'spoils',
        execute: async () => {
          await redis.del(`${keyPrefix}:s:counter`);
          await redis.rpush(`${keyPrefix}:s:counter`, 'mine');
          throw failure;
        },
      };
      const spoilt = new Agent({ name: 'A', model: new ScriptedModel(['done']), outputGuardrails: [spoils] });
      const error = await rejection(runForm(spoilt, 'y', { session }));
      expect(error).toMatchObject({ code: 'session_schema' });
      expect(error.cause).toBe(failure);
    });

    it('neither pops nor writes anew when the model is asked again [SESS-089]', async () => {
      const fake = new FakeOpenAI({ steps: ['fine'] });
      fake.inject({ kind: 'status', status: 503, headers: { 'retry-after-ms': '1' }, times: 2 });
      const client = await fake.client({ maxRetries: 3 });
      const agent = new Agent({ name: 'A', model: new OpenAIResponsesModel('gpt-5', { client }) });
      await session.addItems(users('before'));
      const sent = vi.spyOn(redis, 'sendCommand');
      await runForm(agent, 'x', { session });
      const names = sent.mock.calls.map(([command]) => command.name);
      sent.mockRestore();
      expect(fake.requests).toHaveLength(3);
      // One read, one write of the input, one of the answer.
      expect(names.filter((name) => name === 'lrange')).toHaveLength(1);
      expect(names.filter((name) => name.startsWith('eval'))).toHaveLength(2);
      expect(await kinds()).toEqual(['user', 'user', 'message']);
    });
  });
});

describe('a compaction on Redis', () => {
  const open = (): RedisSession => new RedisSession('s', { client: redis, keyPrefix });

  it('keeps what another process appended meanwhile, and lets changes of its own wait [SESS#61, SESS-316, 317]', async () => {
    await expect(checkCompactionBesideOthers(open)).resolves.toBeUndefined();
  });

  it('counts its candidates anew when another process changed the history [SESS-317]', async () => {
    await expect(checkCandidatesBesideOthers(open)).resolves.toBeUndefined();
  });
});

describe('long histories', () => {
  const COUNT = 100_000;
  const fill = async (): Promise<void> => {
    await session.addItems(users('0'));
    for (let at = 1; at < COUNT; at += 10_000) {
      const texts = Array.from({ length: Math.min(10_000, COUNT - at) }, (_, n) =>
        JSON.stringify(user(`${'x'.repeat(420)}${at + n}`)),
      );
      await redis.rpush(`${keyPrefix}:s:messages`, ...texts);
    }
  };

  it('are read while others run in between, and a tail of them by no more than it has [SESS#48, SESS#49, SESS-160]', async () => {
    await fill();
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const items = await session.getItems();
    clearInterval(timer);
    expect(items).toHaveLength(COUNT);
    expect(JSON.stringify(items.at(-1))).toContain(`x${COUNT - 1}`);
    expect(turns).toBeGreaterThan(3);
    const sent = vi.spyOn(redis, 'sendCommand');
    expect(await session.getItems(20)).toEqual(items.slice(-20));
    const ranges = sent.mock.calls.filter(([command]) => command.name === 'lrange');
    sent.mockRestore();
    expect(ranges.map(([command]) => command.args.slice(1).map(String))).toEqual([['-20', '-1']]);
  });
});

describe('a store on Redis', () => {
  const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' } as const;
  const output = { type: 'function_call_output', call_id: 'c1', output: 'seen' } as const;

  it('copies a history before its third turn and cuts one at 20 items with its pairs whole; the source stays [SESS#72, SESS-373, 374]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    const turns = Array.from({ length: 10 }, (_, n) => [
      user(String(n)),
      { ...call, call_id: `c${n}` },
      { ...output, call_id: `c${n}` },
    ]).flat();
    await session.addItems(turns);
    await store.fork('s', 'copy', { untilTurn: 3 });
    expect(await store.session('copy').getItems()).toEqual(turns.slice(0, 6));
    expect(await session.getItems()).toEqual(turns);
    expect(await store.prune({ maxItems: 20 })).toEqual({ sessions: 0, items: 12 });
    expect(await session.getItems()).toEqual(turns.slice(12));
    expect(await store.session('copy').getItems()).toEqual(turns.slice(0, 6));
  });
});
