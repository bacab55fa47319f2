import { afterEach, describe, expect, it } from 'vitest';
import { Agent, MemorySession, run, setTraceProcessors, UserError } from '../index.ts';
import type { AgentInputItem, RunOptions, RunState, TraceProcessor } from '../index.ts';
import { SessionClosedError } from '../session.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, PlainSession, rejection, resultOf, unhandledDuring } from '../../test/run-kit.ts';

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

  describe(`input that holds no items (${form})`, () => {
    const holes: unknown[] = [{ role: 'user', content: 'x' }];
    holes.length = 3;
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const wrong: readonly (readonly [string, readonly unknown[], RegExp])[] = [
      ['texts', ['hello'], /input\[0\] is a string/],
      ['null', [{ role: 'user', content: 'x' }, null], /input\[1\] is null/],
      ['undefined', [undefined], /input\[0\] is undefined/],
      ['numbers', [5], /input\[0\] is 5/],
      ['functions', [() => 1], /input\[0\] is a function/],
      ['lists', [[]], /input\[0\] is an array/],
      ['maps', [new Map()], /input\[0\] is no plain object/],
      ['promises', [Promise.resolve({})], /input\[0\] is no plain object/],
      ['holes', holes, /input\[1\] is undefined/],
      ['bigints within', [{ role: 'user', content: 1n }], /input\[0\]\.content is a bigint/],
      [
        'functions within',
        [{ role: 'user', content: [{ text: () => 1 }] }],
        /input\[0\]\.content\[0\]\.text is a function/,
      ],
      ['no numbers within', [{ role: 'user', content: Number.NaN }], /input\[0\]\.content is not a finite number/],
      ['themselves', [cycle], /nested deeper/],
      [
        'a toJSON that throws',
        [
          {
            toJSON: () => {
              throw new Error('secret');
            },
          },
        ],
        /input\[0\] cannot be read/,
      ],
      ['a toJSON that gives a text', [{ toJSON: () => 'text' }], /input\[0\] is no object in JSON/],
      [
        'a toJSON that gives a promise',
        [
          {
            toJSON: async () => {
              throw new Error('secret');
            },
          },
        ],
        /input\[0\] has a toJSON that gives a promise/,
      ],
      [
        'a getter that throws',
        [
          {
            get role() {
              throw new Error('secret');
            },
          },
        ],
        /input\[0\] cannot be read/,
      ],
      [
        'a proxy that refuses',
        [
          new Proxy(
            {},
            {
              get() {
                throw new Error('secret');
              },
            },
          ),
        ],
        /input\[0\] cannot be read/,
      ],
    ];
    it.each(wrong)(
      'is refused with the place, before any effect: %s [RUN-102, RUN-105, SESS-063]',
      async (_, input, text) => {
        const session = new MemorySession('s');
        const model = new ScriptedModel(['done']);
        const agent = new Agent({ name: 'A', model });
        for (const options of [{}, { session }]) {
          const error = await rejection(
            (async () => await resultOf(runForm(agent, input as AgentInputItem[], options)))(),
          );
          expect(error).toBeInstanceOf(UserError);
          expect((error as Error).message).toMatch(text);
          expect((error as Error).message).not.toContain('secret');
        }
        expect([await session.getItems(), model.calls]).toEqual([[], []]);
        expect((await resultOf(runForm(agent, 'hi', { session }))).finalOutput).toBe('done');
      },
    );

    it('is taken where it can be written: frozen items, toJSON, members without a value [RUN-102, SESS-063]', async () => {
      const session = new MemorySession('s');
      const agent = new Agent({ name: 'A', model: new ScriptedModel(['done']) });
      const input = [
        Object.freeze({ role: 'user', content: 'a' }),
        Object.assign(Object.create(null), { role: 'user', content: 'b', id: undefined }),
      ] as AgentInputItem[];
      expect((await resultOf(runForm(agent, input, { session }))).status).toBe('completed');
      expect((await session.getItems()).slice(0, 2)).toEqual([
        { role: 'user', content: 'a' },
        { role: 'user', content: 'b' },
      ]);
    });
  });

  describe(`what is given in place of items (${form})`, () => {
    const lists: readonly (readonly [string, unknown, string])[] = [
      ['null', null, 'null'],
      ['an object', {}, 'an object'],
      ['a number', 5, '5'],
      ['null within', [null], 'null as item 0'],
      ['numbers within', [{ role: 'user', content: 'x' }, 2], '2 as item 1'],
      ['a text within', ['x'], 'a string as item 0'],
      ['a hole', [, { role: 'user', content: 'x' }], 'undefined as item 0'], // oxlint-disable-line no-sparse-arrays
    ];

    it.each(lists)(
      'by getItems() fails with its name, before any request: %s [SESS-061, SESS-090, RUN-1606]',
      async (_, given, text) => {
        const session = new PlainSession();
        session.getItems = async () => given as AgentInputItem[];
        const model = new ScriptedModel(['done']);
        const error = await rejection(
          (async () => await resultOf(runForm(new Agent({ name: 'A', model }), 'x', { session })))(),
        );
        expect(error).toBeInstanceOf(UserError);
        expect((error as Error).message).toContain(`getItems() resolved to ${text}`);
        expect([model.calls, session.items]).toEqual([[], []]);
      },
    );

    it.each(lists.slice(3))(
      'by callModelInputFilter fails with its name, before any request: %s [RUN-222]',
      async (_, given, text) => {
        const model = new ScriptedModel(['done']);
        const error = await rejection(
          (async () =>
            await resultOf(
              runForm(new Agent({ name: 'A', model }), 'x', {
                callModelInputFilter: () => ({ input: given as AgentInputItem[], instructions: undefined }),
              }),
            ))(),
        );
        expect(error).toBeInstanceOf(UserError);
        expect((error as Error).message).toContain(`callModelInputFilter returned ${text}`);
        expect(model.calls).toEqual([]);
      },
    );

    it.each(lists.slice(3))(
      'by sessionInputCallback fails with its name, before any request: %s [SESS-066]',
      async (_, given, text) => {
        const session = new PlainSession();
        const model = new ScriptedModel(['done']);
        const error = await rejection(
          (async () =>
            await resultOf(
              runForm(new Agent({ name: 'A', model }), 'x', {
                session,
                sessionInputCallback: () => given as AgentInputItem[],
              }),
            ))(),
        );
        expect(error).toBeInstanceOf(UserError);
        expect((error as Error).message).toContain(`'sessionInputCallback' returned ${text}`);
        expect([model.calls, session.items]).toEqual([[], []]);
      },
    );

    it('by sessionInputCallback as new items fails where it cannot be stored [SESS-066]', async () => {
      const session = new PlainSession();
      const error = await rejection(
        (async () =>
          await resultOf(
            runForm(desk([]), 'x', {
              session,
              sessionInputCallback: (history, items) =>
                [...history, ...items, { role: 'user', content: 1n }] as unknown as AgentInputItem[],
            }),
          ))(),
      );
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toContain('new items[1].content is a bigint');
      expect(session.items).toEqual([]);
    });

    it.each(['prepareHistoryItemForModelInput', 'prepareItemsForPersistence', 'normalizeForComparison'] as const)(
      'by a session`s own %s, also as a promise, fails with its name [SESS-014]',
      async (method) => {
        for (const give of [() => null, async () => await Promise.reject(new Error('later'))]) {
          const session = Object.assign(new PlainSession('s', [{ role: 'user', content: 'old' }]), { [method]: give });
          const model = new ScriptedModel(['done']);
          const seen = await unhandledDuring(async () => {
            const error = await rejection(
              (async () => await resultOf(runForm(new Agent({ name: 'A', model }), 'x', { session })))(),
            );
            expect(error).toBeInstanceOf(UserError);
            expect((error as Error).message).toContain(`${method}() returned`);
          });
          expect(seen).toEqual([]);
          expect(session.kinds).toBe('u');
        }
      },
    );
  });
});
