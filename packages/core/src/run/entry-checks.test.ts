import { afterEach, describe, expect, it } from 'vitest';
import { Agent, MemorySession, run, setTraceProcessors, UserError } from '../index.ts';
import type { RunOptions, RunState, TraceProcessor } from '../index.ts';
import { SessionClosedError } from '../session.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, rejection, resultOf } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

function desk(effects: string[]): Agent {
  return new Agent({
    name: 'A',
    model: new ScriptedModel([toolCall('pay', { id: '1' }), 'done']),
    tools: [effectTool('pay', effects, { needsApproval: true })],
  });
}

async function paused(effects: string[], options: RunOptions = {}): Promise<{ agent: Agent; state: RunState }> {
  const agent = desk(effects);
  const state = (await run(agent, 'go', options)).toState();
  for (const item of state.interruptions) state.approve(item);
  return { agent, state };
}

/** A signal that counts its listeners, and fails where it is told to. */
function fakeSignal(faults: { add?: boolean; remove?: boolean } = {}): {
  signal: AbortSignal;
  listeners: () => number;
} {
  let listeners = 0;
  const signal = {
    aborted: false,
    reason: undefined,
    addEventListener(): void {
      if (faults.add) throw new Error('no listeners here');
      listeners += 1;
    },
    removeEventListener(): void {
      listeners -= 1;
      if (faults.remove) throw new Error('no removal here');
    },
  };
  return { signal: signal as unknown as AbortSignal, listeners: () => listeners };
}

bothForms((runForm, form) => {
  describe(`a start that fails (${form})`, () => {
    const metadata = (): Record<string, unknown> => ({
      get broken(): string {
        throw new Error('metadata');
      },
    });
    const faults: readonly (readonly [string, () => RunOptions])[] = [
      ['an empty trace id', () => ({ traceId: '' })],
      ['an empty trace key', () => ({ traceApiKey: '' })],
      ['a signal that has nothing but `aborted`', () => ({ signal: { aborted: false } as AbortSignal })],
      ['an aborted signal without methods', () => ({ signal: { aborted: true } as AbortSignal })],
      ['a signal that takes no listeners', () => ({ signal: fakeSignal({ add: true }).signal })],
      ['metadata with a getter that throws', () => ({ traceMetadata: metadata() })],
      [
        'metadata that cannot be listed',
        () => ({
          traceMetadata: new Proxy(
            {},
            {
              ownKeys() {
                throw new Error('metadata');
              },
            },
          ),
        }),
      ],
    ];
    it.each(faults)('leaves the state free and as it was: %s [STATE-209, RUN-105, RUN-107]', async (_, wrong) => {
      setTraceProcessors([{ onSpanEnd() {} }]);
      const effects: string[] = [];
      const { agent, state } = await paused(effects, { context: { tenant: 'first' } });
      const { maxTurns } = state;
      const before = state.toString();
      await rejection(
        (async () =>
          await resultOf(runForm(agent, state, { maxTurns: 1, context: { tenant: 'other' }, ...wrong() })))(),
      );
      expect([state.maxTurns, state.context.context, state.toString()]).toEqual([
        maxTurns,
        { tenant: 'first' },
        before,
      ]);
      expect(effects).toEqual([]);
      const result = await resultOf(runForm(agent, state));
      expect([result.status, effects]).toEqual(['completed', ['pay 1']]);
    });

    it('leaves no listener on the signal and no open trace [STATE-209, RUN-306]', async () => {
      const events: string[] = [];
      const recorder: TraceProcessor = {
        carrierKey: 'test',
        getCarrier: () =>
          new Proxy(
            {},
            {
              get() {
                throw new Error('carrier');
              },
            },
          ),
        onTraceStart: () => void events.push('start'),
        onTraceEnd: () => void events.push('end'),
      };
      setTraceProcessors([recorder]);
      const { signal, listeners } = fakeSignal();
      const { agent, state } = await paused([]);
      await rejection((async () => await resultOf(runForm(agent, state, { signal, traceMetadata: metadata() })))());
      expect(listeners()).toBe(0);
      expect(events.filter((event) => event === 'start').length).toBe(events.filter((event) => event === 'end').length);
    });

    it('is refused for what is no signal, by name [RUN-105]', async () => {
      const error = await rejection(
        (async () => await resultOf(runForm(desk([]), 'go', { signal: { aborted: false } as AbortSignal })))(),
      );
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/'signal'.*AbortSignal/);
    });

    it('does not come of a signal that fails at the end: the outcome stands [RUN-306]', async () => {
      const { signal, listeners } = fakeSignal({ remove: true });
      const agent = new Agent({ name: 'A', model: new ScriptedModel(['done']) });
      const result = await resultOf(runForm(agent, 'go', { signal }));
      expect([result.finalOutput, listeners()]).toEqual(['done', 0]);
    });
  });

  describe(`a resume with a closed session (${form})`, () => {
    it('is refused before any tool runs; the state goes on with an open one [STATE-210, SESS-054, STATE-201]', async () => {
      const effects: string[] = [];
      const session = new MemorySession('s');
      const { agent, state } = await paused(effects, { session });
      const closed = new MemorySession('s');
      await closed.close();
      const error = await rejection((async () => await resultOf(runForm(agent, state, { session: closed })))());
      expect(error).toBeInstanceOf(SessionClosedError);
      expect(effects).toEqual([]);
      const result = await resultOf(runForm(agent, state, { session }));
      expect([result.status, effects]).toEqual(['completed', ['pay 1']]);
    });
  });
});
