import { afterEach, describe, expect, it } from 'vitest';
import {
  addTraceProcessor,
  Agent,
  defineModel,
  getDefaultModelSettings,
  run,
  Runner,
  runStreamed,
  setTracingDisabled,
  UserError,
  withSpan,
  withTrace,
} from '../index.ts';
import { BatchTraceProcessor } from '../tracing.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { FakeOpenAI, ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, rejection, resultOf } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

/** What is no options object. */
const odd: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a number', 5],
  ['true', true],
  ['a function', () => {}],
  ['a list', []],
  ['a bigint', 1n],
  ['a symbol', Symbol('x')],
  ['a text', 'x'],
  ['a date', new Date()],
  ['a map', new Map([['maxTurns', 1]])],
  ['an instance', new (class Options {})()],
  ['an object with inherited options', Object.create({ maxTurns: 1 })],
];

const errorOf = (call: () => unknown): unknown => {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
};

bothForms((runForm, form) => {
  it.each(odd)(
    `options of a run that are %s are refused before anything starts (${form}) [RUN-105]`,
    async (_, options) => {
      const model = new ScriptedModel(['done']);
      const error = await rejection(
        (async () => await resultOf(runForm(new Agent({ name: 'A', model }), 'x', options as object)))(),
      );
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/must be a(n| plain) object, not /);
      expect(model.calls).toEqual([]);
    },
  );
});

describe('options that are no plain object', () => {
  const agent = (): Agent =>
    new Agent({
      name: 'A',
      model: new ScriptedModel([toolCall('t', { id: '1' }), 'done']),
      tools: [effectTool('t', [], { needsApproval: true })],
    });

  it.each(odd)('%s, are refused by everything that takes options [RUN-105]', async (_, options) => {
    const given = options as never;
    const result = await run(agent(), 'x');
    const stream = runStreamed(agent(), 'x');
    const state = result.toState();
    const [item] = state.interruptions;
    const calls: readonly (() => unknown)[] = [
      () => runStreamed(agent(), 'x', given),
      () => new Runner(given),
      () => new Runner().runStreamed(agent(), 'x', given),
      () => stream.cancel(given),
      () => result.toInputList(given),
      () => state.toInputList(given),
      () => state.approve(item as never, given),
      () => state.reject(item as never, given),
      () => new BatchTraceProcessor({ export: async () => {} }, given),
      () => withTrace('x', () => {}, given),
    ];
    for (const call of calls) expect(errorOf(call)).toBeInstanceOf(UserError);
    expect(state.getDecisions()).toEqual([]);
    expect((await stream.completed).status).toBe('interrupted');
  });

  it('are told from objects of no class and from options that are not given [RUN-103]', async () => {
    const bare = Object.assign(Object.create(null) as object, { maxTurns: 3 });
    expect((await run(agent(), 'x', bare)).maxTurns).toBe(3);
    expect((await run(agent(), 'x', undefined as never)).maxTurns).toBe(10);
  });
});

describe('a mistake that would show nowhere', () => {
  it('is refused by cancel: unknown members and modes [RUN-1412]', async () => {
    const stream = runStreamed(new Agent({ name: 'A', model: new ScriptedModel(['done']) }), 'x');
    for (const options of [{ foo: 1 }, { mode: 'later' }, { mode: null }])
      expect(errorOf(() => stream.cancel(options as never))).toBeInstanceOf(UserError);
    expect((await stream.completed).status).toBe('completed');
  });

  it.each([
    ['a switch that is neither', () => setTracingDisabled('false' as never)],
    ['a processor with a misspelled method', () => addTraceProcessor({ onSpanFinish() {} } as never)],
    ['a processor whose method is none', () => addTraceProcessor({ onSpanEnd: 5 } as never)],
    ['a trace that is none', () => withTrace(5 as never, () => 1)],
    ['a trace of nothing', () => withTrace(null as never, () => 1)],
    ['a trace without work', () => withTrace('x', 5 as never)],
    ['a span that is none', () => withSpan(5 as never, () => 1)],
    ['a span without work', () => withSpan({ type: 'custom', name: 'x' }, undefined as never)],
  ])('is refused by tracing: %s [TRACE-P3, TRACE-P9]', (_, call) => {
    expect(errorOf(call)).toBeInstanceOf(UserError);
  });

  it('names the method that was meant; a processor may have none [TRACE-P3]', () => {
    expect(() => addTraceProcessor({ onSpanFinish() {} } as never)).toThrow(
      /'onSpan(End|Start)' with 'onSpanFinish'|at least one/,
    );
    expect(() => addTraceProcessor({})).not.toThrow();
  });

  it.each([
    ['an unknown kind', { kind: 'typo' }],
    ['no kind', {}],
    ['no fault', null],
    ['a kind without what it needs', { kind: 'status' }],
    ['a wait without its length', { kind: 'delay' }],
    ['a member of another kind', { kind: 'hang', ms: 5 }],
    ['a misspelled condition', { kind: 'hang', on: { pth: '/v1/responses' } }],
    ['never', { kind: 'hang', times: 0 }],
  ])('is refused by the fake service: %s [MODEL-1201]', (_, fault) => {
    expect(errorOf(() => new FakeOpenAI().inject(fault as never))).toBeInstanceOf(UserError);
  });

  it.each([
    ['a model without a name', { model: '' }],
    ['a model whose name is blank', { model: ' ' }],
    ['hooks without a hook', { hooks: {} }],
    ['hooks of another name', { hooks: { onBegin() {} } }],
  ])('is refused by an agent: %s [TOOL-A1, RUN-801]', (_, options) => {
    expect(errorOf(() => new Agent({ name: 'A', ...options } as never))).toBeInstanceOf(UserError);
  });

  it.each([
    ['nothing', null],
    ['a text', 'gpt'],
    ['an empty object', {}],
    ['a form that is no function', { getResponse: 5 }],
    ['a stream that is no function', { async getResponse() {}, streamResponse: 'x' }],
  ])('is refused by defineModel: %s [MODEL-113]', (_, model) => {
    expect(errorOf(() => defineModel(model as never))).toBeInstanceOf(UserError);
  });

  it('is refused by getDefaultModelSettings: a name that is none [MODEL-303]', () => {
    for (const name of [5, null, {}])
      expect(errorOf(() => getDefaultModelSettings(name as never))).toBeInstanceOf(UserError);
  });
});
