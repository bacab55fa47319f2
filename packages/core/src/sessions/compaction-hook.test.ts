import { afterEach, describe, expect, it } from 'vitest';

import { Agent, MemorySession } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults, ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, user } from '../../test/run-kit.ts';
import type { AgentInputItem } from '../items/items.ts';
import { itemDigest } from '../items/convert.ts';
import { CompactionHook } from './compaction-hook.ts';
import { compactionEvidence } from './contract.ts';
import type { CompactionOptions } from './contract.ts';

afterEach(resetDefaults);

/** Writes down what runs tell it, and compacts nothing. */
function listening() {
  const told: unknown[] = [];
  const evidence: unknown[] = [];
  const session = Object.assign(new MemorySession('s'), {
    deferredResponseId: undefined as string | undefined,
    deferCompaction: async (responseId: string, options: object = {}): Promise<void> => {
      session.deferredResponseId ??= responseId;
      told.push(['defer', responseId, options]);
    },
    runCompaction: async (options: CompactionOptions = {}): Promise<undefined> => {
      const { [compactionEvidence]: seen, ...given } = options;
      evidence.push(seen?.itemDigests.length);
      told.push(['compact', given]);
    },
  });
  return { session, told, evidence };
}

bothForms((runForm, form) => {
  describe(`what a run tells a session that compacts (${form})`, () => {
    it.each([
      ['and nothing of storing where no setting says it', {}, {}],
      ['and whether responses are stored where a setting says it', { store: false }, { store: false }],
    ])(
      'puts it off after outputs of tools and of handoffs, and asks when they are answered, %s [SESS-121]',
      async (_, modelSettings, store) => {
        const { session, told } = listening();
        const model = new ScriptedModel([toolCall('t'), toolCall('transfer_to_b'), 'done']);
        const b = new Agent({ name: 'B', model, modelSettings });
        const a = new Agent({ name: 'A', model, modelSettings, tools: [effectTool('t', [])], handoffs: [b] });
        await runForm(a, 'x', { session });
        expect(told).toEqual([
          ['defer', 'resp_1', store],
          ['defer', 'resp_2', store],
          ['compact', { responseId: 'resp_3', ...store, force: true }],
        ]);
      },
    );

    it('asks without force where nothing was put off, and tells nothing after the input alone [SESS-121]', async () => {
      const { session, told } = listening();
      await runForm(new Agent({ name: 'A', model: new ScriptedModel(['done']) }), 'x', { session });
      expect(told).toEqual([['compact', { responseId: 'resp_1' }]]);
    });
  });
});

describe('the evidence of what the model saw', () => {
  it('is of the latest request that succeeded: one that is under way, or failed, empties it [SESS-123]', async () => {
    const { session, evidence } = listening();
    const hook = new CompactionHook({
      session,
      context: {} as never,
      reasoningItemIdPolicy: undefined,
      signal: undefined,
      countUsage: () => undefined,
    });
    const stored = (): Promise<boolean> =>
      hook.stored(
        { responseId: 'r', store: null, hasLocalToolOutputs: false, exchange: hook.exchange } as never,
        async (_, work) => await work(),
      );
    hook.answered([user('a'), user('b')], [{ type: 'message' }]);
    await stored();
    hook.asked();
    await stored();
    hook.answered([user('c')], []);
    await stored();
    expect(evidence).toEqual([3, 0, 1]);
  });

  it('knows items as the session compares them, and reasoning by the policy of the run [SESS-104, SESS-123]', () => {
    const session = Object.assign(listening().session, {
      normalizeForComparison: ({ id: _, ...item }: AgentInputItem & { id?: unknown }) => item as AgentInputItem,
    });
    const reasoning = { type: 'reasoning' as const, summary: [] };
    for (const [compared, policy] of [
      [session, undefined],
      [listening().session, 'omit'],
    ] as const) {
      const hook = new CompactionHook({
        session: compared,
        context: {} as never,
        reasoningItemIdPolicy: policy,
        signal: undefined,
        countUsage: () => undefined,
      });
      hook.answered([{ ...reasoning, id: 'rs_1' }], []);
      expect(hook.exchange?.itemDigests).toEqual([itemDigest(reasoning as unknown as AgentInputItem, 'normalized')]);
    }
  });
});
