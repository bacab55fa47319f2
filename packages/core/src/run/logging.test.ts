import { afterEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { Agent, configureLogging, run, runStreamed, setTraceProcessors, tool, withTrace } from '../index.ts';
import type { LoggingOptions, LogRecord, RunOptions } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, exactly, idle, logged, PlainSession, readAll, rejection } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

/** The quietest lines too. */
const allLogged = (options: LoggingOptions = {}): LogRecord[] => logged({ level: 'debug', ...options });

const secret = 'x9-secret';
const boom = (): never => {
  throw new Error(secret);
};

/** Runs that log all there is to log, with a secret wherever the user or the model can put one. */
const noisy: Readonly<Record<string, (go: typeof run) => Promise<unknown>>> = {
  'a tool that fails': (go) =>
    go(
      new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('t', { id: secret }), 'done']),
        tools: [tool({ name: 't', parameters: z.object({ id: z.string() }), execute: boom })],
      }),
      secret,
      { toolErrorFormatter: boom },
    ),
  'a policy and a program that fail': async (go) => {
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([toolCall('g', { id: secret }, { callId: 'c' }), 'done']),
      tools: [effectTool('g', [], { needsApproval: true })],
    });
    const state = (await go(agent, secret)).toState();
    return await go(agent, state, { onApproval: boom });
  },
  'an item of an unknown type': (go) =>
    go(new Agent({ name: 'A', model: new ScriptedModel([exactly({ type: 'odd', secret }, text(secret))]) }), secret),
  'a session that fails behind a failing tool': (go) => {
    const session = new PlainSession();
    session.faults.push(undefined, 'before');
    const late = tool({ name: 'late', failureErrorFunction: null, execute: () => idle().then(boom) });
    return go(
      new Agent({
        name: 'A',
        model: new ScriptedModel([[toolCall('t', { id: secret }), toolCall('late')]]),
        tools: [effectTool('t', [], { result: () => secret }), late],
      }),
      secret,
      { session },
    );
  },
  'hooks, models and processors that fail on the way out': async (go) => {
    setTraceProcessors([
      { onTraceStart: boom, onTraceEnd: boom, onSpanStart: boom, onSpanEnd: boom, forceFlush: boom, shutdown: boom },
    ]);
    const model = Object.assign(new ScriptedModel([secret]), { onRunEnd: boom });
    return await go(new Agent({ name: 'A', model }), secret, { hooks: { onRunEnd: boom } });
  },
};

bothForms((runForm, form) => {
  describe(`log lines (${form})`, () => {
    it.each(Object.entries(noisy))(
      'of %s hold no content of the user, the model or an exception [RUN-1901]',
      async (_, play) => {
        const records = allLogged();
        await play(runForm).catch(() => undefined);
        expect(records.length).toBeGreaterThan(0);
        for (const { message, data } of records) {
          expect(message).not.toContain(secret);
          // Exception objects carry their text, whatever JSON says of them.
          expect([message, holdsSecret(data)]).toEqual([message, false]);
        }
      },
    );

    it('of tracing and of runs have names of their own, and one sink [RUN#89, RUN-1901]', async () => {
      const records = allLogged({ level: 'warn' });
      setTraceProcessors([{ onTraceStart: boom, onTraceEnd() {}, onSpanStart() {}, onSpanEnd() {} }]);
      const twice = [effectTool('t', []), effectTool('t', [])];
      await runForm(new Agent({ name: 'A', model: new ScriptedModel(['x']), tools: twice }), 'x');
      expect(new Set(records.map(({ logger }) => logger))).toEqual(new Set(['openai.agents', 'openai.agents.tracing']));
    });

    it('that come with a wrong formatter come per call; other warnings once per run [RUN-1904, RUN-241]', async () => {
      const records = allLogged({ level: 'warn' });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([
          exactly({ type: 'odd' }, toolCall('t', {}, { callId: 'a' }), toolCall('t', {}, { callId: 'b' })),
          exactly({ type: 'odd' }, toolCall('t', {}, { callId: 'c' })),
          'done',
        ]),
        tools: [effectTool('t', []), tool({ name: 't', execute: boom })],
      });
      await runForm(agent, 'x', { toolErrorFormatter: (() => 5) as never });
      const count = (part: string): number => records.filter(({ message }) => message.includes(part)).length;
      expect([count('toolErrorFormatter'), count('type odd'), count('have one name')]).toEqual([3, 1, 1]);
    });

    it('cannot fail a run: a sink may throw [RUN-1905]', async () => {
      configureLogging({ level: 'debug', sink: boom });
      const twice = [effectTool('t', []), effectTool('t', [])];
      const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('t'), 'done']), tools: twice });
      expect((await runForm(agent, 'x')).finalOutput).toBe('done');
    });
  });

  describe(`what may be seen (${form})`, () => {
    const invalid = () =>
      new Agent<unknown, unknown>({
        name: 'A',
        model: new ScriptedModel([`{"n":"${secret}"}`], { trace: true }),
        outputType: z.object({ n: z.number() }),
      });
    const play = async (options: RunOptions) => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const error = (await rejection(runForm(invalid(), 'x', options))) as Error;
      const spans = JSON.stringify(recorder.spans.map((span) => span.toJSON()));
      return { inError: error.message.includes(secret), inSpans: spans.includes(secret), error };
    };

    it.each([
      [true, true],
      [true, false],
      [false, true],
      [false, false],
    ])(
      'in errors is said by the log flag alone (%s), in spans by the tracing flag alone (%s) [RUN-1903, RUN-1902, RUN-1806]',
      async (dontLogModelData, traceIncludeSensitiveData) => {
        allLogged({ dontLogModelData });
        const { inError, inSpans, error } = await play({ traceIncludeSensitiveData });
        expect([inError, inSpans]).toEqual([!dontLogModelData, traceIncludeSensitiveData]);
        const { runData, state, cause } = error as Error & { runData?: unknown; state?: unknown };
        expect([runData !== undefined, state !== undefined]).toEqual([!dontLogModelData, !dontLogModelData]);
        expect([dontLogModelData && cause, error.stack?.includes(secret)]).toEqual([
          dontLogModelData ? undefined : false,
          !dontLogModelData,
        ]);
        expect(error.message).toMatch(/\bn\b/);
      },
    );

    it('of tools is said by their own flag, not by that of models [RUN-1903]', async () => {
      const lines = async (options: LoggingOptions): Promise<boolean> => {
        const records = allLogged(options);
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('t'), 'done'] as ModelStep[]),
          tools: [tool({ name: 't', execute: boom })],
        });
        await runForm(agent, 'x');
        return records.some(({ message, data }) => message.includes(secret) || holdsSecret(data));
      };
      expect(await lines({ dontLogModelData: false, dontLogToolData: true })).toBe(false);
      expect(await lines({ dontLogModelData: true, dontLogToolData: false })).toBe(true);
    });
  });
});

it('a line of a run stands with its logger inside a trace of the user too [RUN#89]', async () => {
  const records = allLogged({ level: 'warn' });
  await withTrace('outer', async () => {
    const agent = new Agent({ name: 'A', model: new ScriptedModel([exactly({ type: 'odd' }, text('x'))]) });
    await run(agent, 'x');
  });
  expect(records.map(({ logger, level }) => [logger, level])).toEqual([['openai.agents', 'warn']]);
});

it('a stream that nobody reads tells its failure in one line, one that is read or awaited in none [RUN-1409, RUN-1901]', async () => {
  const records = allLogged({ level: 'warn' });
  const start = () => runStreamed(new Agent({ name: 'A', model: new ScriptedModel([new Error(secret)]) }), 'x');
  const dropped = start();
  await vi.waitUntil(() => dropped.isComplete);
  await idle();
  expect(dropped.status).toBe('failed');
  expect(records.map(({ level, message }) => [level, message.includes('(Error)')])).toEqual([['error', true]]);
  expect(holdsSecret(records)).toBe(false);
  await rejection(start().completed);
  await rejection(readAll(start()));
  expect(records).toHaveLength(1);
});

function holdsSecret(value: unknown, seen: Set<unknown> = new Set()): boolean {
  if (typeof value === 'string') return value.includes(secret);
  if (typeof value !== 'object' || value === null || seen.has(value)) return false;
  seen.add(value);
  return Reflect.ownKeys(value).some((key) => holdsSecret(Reflect.get(value, key), seen));
}

bothForms((runForm, form) => {
  describe(`a resume that does not end the run (${form})`, () => {
    const resumed = async (options: LoggingOptions): Promise<unknown[]> => {
      const model = new ScriptedModel([toolCall('g', { id: 'x' }, { callId: 'c' }), 'done']);
      const long = `${secret} ${'x'.repeat(200)}`;
      const agent = new Agent({
        name: 'A',
        model,
        tools: [effectTool('g', [], { needsApproval: true, result: () => long })],
      });
      const records = allLogged(options);
      const state = (await runForm(agent, 'go')).toState();
      for (const item of state.interruptions) state.approve(item);
      await runForm(agent, state);
      return records.filter(({ message }) => message.includes('did not end')).map(({ level, data }) => [level, data]);
    };

    it('leaves one debug record, of the output no more than 100 characters and these only when asked for [RUN-1906]', async () => {
      const facts = { turn: 1, agent: 'A', step: 'run_again' };
      const waited = [{ type: 'tool_call_item' }, { type: 'tool_approval_item' }];
      expect(await resumed({})).toEqual([
        ['debug', { ...facts, items: [...waited, { type: 'tool_call_output_item' }] }],
      ]);
      expect(await resumed({ dontLogToolData: false })).toEqual([
        [
          'debug',
          {
            ...facts,
            items: [...waited, { type: 'tool_call_output_item', output: `${secret} ${'x'.repeat(90)}` }],
          },
        ],
      ]);
    });
  });
});
