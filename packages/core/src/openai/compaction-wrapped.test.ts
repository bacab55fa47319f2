import { afterEach, describe, expect, it } from 'vitest';
import { Agent, MemorySession } from '../index.ts';
import type { AgentInputItem } from '../index.ts';
import type { Session } from '../session.ts';
import { exchangeDigest } from '../sessions/compaction-hook.ts';
import { compactionEvidence, hidesItems } from '../sessions/contract.ts';
import { RunContext } from '../state/context.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults, ScriptedModel, toolCall } from '../testing/index.ts';
import { item, summary, talk, wrapped } from '../../test/compaction-kit.ts';
import { effectTool, kindsOf, user } from '../../test/run-kit.ts';
import { OpenAICompactionSession } from './compaction-session.ts';

afterEach(resetDefaults);

const four = ['getItems', 'addItems', 'popItem', 'clearSession'] as const;
const versions = ['readHistory', 'appendIfVersion', 'replaceHistory'] as const;
const whole = ['applyHistoryTransaction', ...versions] as const;
type Method = (typeof four)[number] | (typeof whole)[number];

/** A session with the four functions and those methods, which notes what each was called with. */
function noting(methods: readonly Method[], memory: MemorySession = new MemorySession()) {
  const calls: [string, ...unknown[]][] = [];
  const session = { sessionId: 's', acceptsRunContext: true };
  for (const name of [...four, ...methods]) {
    const method = (memory[name] as (...args: unknown[]) => Promise<unknown>).bind(memory);
    Object.assign(session, {
      async [name](...args: unknown[]) {
        calls.push([name, ...args]);
        return await method(...args);
      },
    });
  }
  Object.assign(session, {
    [hidesItems]: async (...args: unknown[]) => {
      calls.push(['hidesItems', ...args]);
      return false;
    },
  });
  const withoutContext = (ctx: RunContext) => calls.filter((call) => call.at(-1) !== ctx).map(([name]) => name);
  return { session: session as unknown as Session, memory, calls, withoutContext };
}
const kinds = [
  ['with transactions', whole],
  ['with versions', versions],
  ['of four functions', []],
] as const;

describe('a session that compacts gives the wrapped session', () => {
  it('what its own methods were called with, the context last [SESS-033, SESS-038]', async () => {
    const ctx = new RunContext({ tenant: 'a' });
    const { session, calls } = noting(whole);
    const { compacting } = await wrapped(session);
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: [user('1')] } } as const;
    await compacting.addItems([user('0')], ctx);
    await compacting.applyHistoryTransaction?.(operation, ctx);
    const { version = '' } = (await compacting.readHistory?.(1, ctx)) ?? {};
    const next = (await compacting.appendIfVersion?.(version, [user('2')], { operationId: 'op2' }, ctx)) ?? '';
    await compacting.replaceHistory?.([user('3')], { ifVersion: next, operationId: 'op3' }, ctx);
    await compacting.getItems(2, ctx);
    await compacting.popItem(ctx);
    await compacting.clearSession(ctx);
    expect(calls).toEqual([
      ['addItems', [user('0')], ctx],
      ['applyHistoryTransaction', operation, ctx],
      ['readHistory', 1, ctx],
      ['appendIfVersion', version, [user('2')], { operationId: 'op2' }, ctx],
      ['replaceHistory', [user('3')], { ifVersion: next, operationId: 'op3' }, ctx],
      ['getItems', 2, ctx],
      ['popItem', ctx],
      ['clearSession', ctx],
    ]);
  });

  it.each(kinds)(
    'the context in each call of a compaction, by hand and after a turn, where it is one %s [SESS-033]',
    async (_, methods) => {
      const evidence = {
        itemDigests: talk(10).map((one) => exchangeDigest(one, null, undefined)),
        reasoningItemIdPolicy: null,
        generation: undefined,
        signal: undefined,
      };
      for (const options of [{}, { [compactionEvidence]: evidence }]) {
        const ctx = new RunContext({ tenant: 'a' });
        const { session, memory, calls, withoutContext } = noting(methods, new MemorySession('s', { items: talk(10) }));
        const { compacting, gives } = await wrapped(session, { mode: 'input' });
        gives([summary]);
        await compacting.deferCompaction('resp_0', {}, ctx);
        await compacting.runCompaction(options, ctx);
        expect(await memory.getItems()).toEqual([summary]);
        expect(calls.length).toBeGreaterThan(2);
        expect(withoutContext(ctx)).toEqual([]);
      }
    },
  );

  it('the items to be prepared, for the model and for keeping, and has its word on ids of reasoning [SESS-038]', async () => {
    const policy = {
      preserveReasoningItemIds: true,
      prepareHistoryItemForModelInput: (one: AgentInputItem) => item({ ...one, status: 'for the model' }),
      prepareItemsForPersistence: (items: readonly AgentInputItem[]) => items.slice(1),
      normalizeForComparison: (one: AgentInputItem) => item({ ...one, status: 'compared' }),
    };
    const { compacting } = await wrapped(Object.assign(new MemorySession(), policy));
    expect(compacting.preserveReasoningItemIds).toBe(true);
    expect(compacting.prepareHistoryItemForModelInput?.(user('a'))).toMatchObject({ status: 'for the model' });
    expect(compacting.prepareItemsForPersistence?.([user('a'), user('b')])).toEqual([user('b')]);
    expect(compacting.normalizeForComparison?.(user('a'))).toMatchObject({ status: 'compared' });
    const plain = (await wrapped(new MemorySession())).compacting;
    expect(plain.preserveReasoningItemIds).toBeUndefined();
    for (const name of Object.keys(policy)) expect(plain[name as keyof typeof policy]).toBeUndefined();
  });

  it('the question for its id, and says that it is closed when the wrapped one is [SESS-001, SESS-038]', async () => {
    const unborn = Object.assign(noting([]).session, { sessionId: undefined, getSessionId: async () => 'given later' });
    expect(await new OpenAICompactionSession(unborn).getSessionId()).toBe('given later');
    const memory = new MemorySession('m');
    const compacting = new OpenAICompactionSession(memory);
    expect(await compacting.getSessionId()).toBe('m');
    expect(compacting.closed).toBe(false);
    await memory.close();
    expect(compacting.closed).toBe(true);
  });
});

bothForms((runForm, form) => {
  it(`the context of a run reaches a session that is wrapped in one that compacts, whatever is asked of it (${form}) [SESS-033, SESS-121]`, async () => {
    for (const [, methods] of kinds) {
      const { session, memory, calls, withoutContext } = noting(methods);
      const { compacting, gives } = await wrapped(session, { mode: 'input', shouldCompact: () => true });
      gives([summary]);
      const model = new ScriptedModel([toolCall('t'), 'done']);
      const result = await runForm(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'x', {
        session: compacting,
      });
      expect(kindsOf(await memory.getItems())).toBe('compaction');
      expect(calls.length).toBeGreaterThan(5);
      expect(withoutContext(result.context)).toEqual([]);
    }
  });
});
