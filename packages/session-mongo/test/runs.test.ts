import { Agent, jsonSchema, tool } from '@agents/core';
import type { OutputGuardrail } from '@agents/core';
import { OpenAIResponsesModel } from '@agents/core/openai';
import { bothForms, FakeOpenAI, ScriptedModel, toolCall } from '@agents/core/testing';
import { checkCandidatesBesideOthers, checkCompactionBesideOthers } from '@agents/testkit/compaction';
import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import { freshName, hooked, mongoUrl, raw } from './mongo.ts';

let client: MongoClient;
let database: string;
let session: MongoDBSession;
/** Commands of the session, with their collections. */
let sent: string[];
/** What the next insertion of a batch fails with. */
let failure: Error | undefined;
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(() => client.close());
beforeEach(() => {
  database = freshName();
  sent = [];
  failure = undefined;
  const watched = hooked(client, (command, collection) => {
    sent.push(`${command} ${collection}`);
    if (failure !== undefined && command === 'insertOne' && collection === 'agent_messages') throw failure;
  });
  session = new MongoDBSession('s', { client: watched, database });
});
afterEach(() => client.db(database).dropDatabase());

const user = (content: string) => ({ role: 'user', content }) as const;
const users = (...contents: readonly string[]) => contents.map(user);
const empty = jsonSchema({ type: 'object', properties: {}, required: [], additionalProperties: false });
const kinds = async (): Promise<string[]> =>
  (await session.getItems()).map((item) =>
    'type' in item && item.type ? item.type : String((item as { role?: string }).role),
  );
const rejection = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    (error: unknown) => error,
  );

bothForms((runForm, form) => {
  describe(`a run on MongoDB (${form})`, () => {
    it('stores of a blocked output of a tool the call and a withheld output: the text is nowhere in the store [SESS#19, SESS-087]', async () => {
      const look = tool({ name: 'look', description: 'Looks.', parameters: empty, execute: () => 'secret' });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[toolCall('look', {}, { callId: 'c1' })]]),
        tools: [look],
        toolUseBehavior: 'stop_on_first_tool',
        outputGuardrails: [{ name: 'no', execute: () => ({ tripwireTriggered: true }) }],
      });
      await rejection(runForm(agent, 'x', { session }));
      expect(await kinds()).toEqual(['user', 'function_call', 'function_call_output']);
      const stored = JSON.stringify(await raw(client, database).messages.find().toArray());
      expect(stored).not.toContain('secret');
      expect(stored).toContain('withheld');
    });

    it('keeps the final turn when a guardrail throws; if that write fails, its error has the one of the guardrail as cause [SESS-087]', async () => {
      const verdict = new Error('no verdict');
      const broken = new Error('not written');
      let runs = 0;
      const throws: OutputGuardrail = {
        name: 'bad',
        execute: () => {
          if (++runs === 2) failure = broken;
          throw verdict;
        },
      };
      const agent = () => new Agent({ name: 'A', model: new ScriptedModel(['done']), outputGuardrails: [throws] });
      expect(await rejection(runForm(agent(), 'x', { session }))).toBe(verdict);
      expect(await kinds()).toEqual(['user', 'message']);
      const error = await rejection(runForm(agent(), 'y', { session }));
      expect(error).toBe(broken);
      expect((error as Error).cause).toBe(verdict);
    });

    it('neither pops nor writes anew when the model is asked again [SESS-089]', async () => {
      const fake = new FakeOpenAI({ steps: ['fine'] });
      fake.inject({ kind: 'status', status: 503, headers: { 'retry-after-ms': '1' }, times: 2 });
      const model = new OpenAIResponsesModel('gpt-5', { client: await fake.client({ maxRetries: 3 }) });
      await session.addItems(users('before'));
      sent = [];
      await runForm(new Agent({ name: 'A', model }), 'x', { session });
      expect(fake.requests).toHaveLength(3);
      // The input and the answer; nothing else of the batches is changed.
      expect(sent.filter((command) => command.endsWith('agent_messages') && !command.startsWith('find '))).toEqual([
        'insertOne agent_messages',
        'insertOne agent_messages',
      ]);
      expect(await kinds()).toEqual(['user', 'user', 'message']);
    });
  });
});

describe('a compaction on MongoDB', () => {
  const open = (): MongoDBSession => new MongoDBSession('s', { client, database });

  it('keeps what another process appended meanwhile, and lets changes of its own wait [SESS#61, SESS-316, 317]', async () => {
    await expect(checkCompactionBesideOthers(open)).resolves.toBeUndefined();
  });

  it('counts its candidates anew when another process changed the history [SESS-317]', async () => {
    await expect(checkCandidatesBesideOthers(open)).resolves.toBeUndefined();
  });
});
