import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, ModelBehaviorError, RunState, tool, ToolCallError, UserError } from '../src/index.ts';
import type { RunContext } from '../src/index.ts';
import { configureLogging } from '../src/base/logger.ts';
import { bothForms } from '../src/testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { setTraceProcessors } from '../src/tracing.ts';
import { rejection } from './run-kit.ts';

const fixed = 'An error occurred while running the tool. Please try again.';

/** The outputs that the last request of a model holds. */
function outputsIn(model: ScriptedModel): unknown[] {
  const input = model.calls.at(-1)?.request.input ?? [];
  return input.flatMap((item) => (item.type === 'function_call_output' ? [item.output] : []));
}

let recorder: InMemoryTraceProcessor;
let logged: string[];

beforeEach(() => {
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
  logged = [];
  configureLogging({ sink: ({ level, message }) => void logged.push(`${level}: ${message}`) });
});

afterEach(() => resetDefaults());

bothForms((run, form) => {
  describe(`tools in a run (${form})`, () => {
    it('execute with typed arguments, and what they give goes to the model [TOOL-AC1]', async () => {
      const seen: unknown[] = [];
      const add = tool({
        name: 'add',
        parameters: z.object({ a: z.number(), b: z.number() }),
        execute: (args) => {
          seen.push(args);
          return args.a + args.b;
        },
      });
      const model = new ScriptedModel([toolCall('add', { a: 2, b: 3 }), '5']);
      const result = await run(new Agent({ name: 'A', tools: [add], model }), 'hi');
      expect(seen).toEqual([{ a: 2, b: 3 }]);
      expect(outputsIn(model)).toEqual(['5']);
      expect(result.finalOutput).toBe('5');
      expect(result.newItems.map((item) => item.type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
    });

    it('run side by side, their outputs in the order of the calls [TOOL-AC2]', async () => {
      const running: string[] = [];
      let most = 0;
      const wait = tool({
        name: 'wait',
        parameters: z.object({ ms: z.number() }),
        execute: async ({ ms }) => {
          running.push(String(ms));
          most = Math.max(most, running.length);
          await new Promise((resolve) => setTimeout(resolve, ms));
          running.pop();
          return `${ms}`;
        },
      });
      const model = new ScriptedModel([
        [toolCall('wait', { ms: 30 }), toolCall('wait', { ms: 10 }), toolCall('wait', { ms: 20 })],
        'done',
      ]);
      await run(new Agent({ name: 'A', tools: [wait], model }), 'hi');
      expect(most).toBe(3);
      expect(outputsIn(model)).toEqual(['30', '10', '20']);
    });

    it('structured output is parsed, and asked for strictly under its name [TOOL-AC3]', async () => {
      const model = new ScriptedModel(['{"stars":4,"note":null}']);
      const agent = new Agent({
        name: 'A',
        outputType: z.object({ stars: z.int(), note: z.string().optional() }),
        model,
      });
      const result = await run(agent, 'hi');
      expect(result.finalOutput).toEqual({ stars: 4 });
      expect(model.calls[0]?.request.outputSchema).toMatchObject({
        name: 'final_output',
        strict: true,
        schema: { required: ['stars', 'note'] },
      });
    });

    it('a null for an optional member is no value [TOOL-AC13] [TOOL-O17]', async () => {
      const model = new ScriptedModel(['{"a":null}']);
      const result = await run(
        new Agent({ name: 'A', outputType: z.object({ a: z.string().optional() }), model }),
        'hi',
      );
      expect(result.finalOutput).toEqual({});
    });

    it('text that does not fit the output type fails the run, without the text in message or spans [TOOL-O7]', async () => {
      const model = new ScriptedModel(['x9-secret']);
      const error = await rejection(run(new Agent({ name: 'A', outputType: z.object({}), model }), 'hi'));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).not.toContain('x9-secret');
      expect(JSON.stringify(recorder.spans)).not.toContain('x9-secret');
    });

    it('what a failing tool threw reaches neither model nor item nor span [TOOL-AC5] [TOOL-F22]', async () => {
      const leak = tool({
        name: 'leak',
        execute: () => {
          throw new Error('x9-secret');
        },
      });
      const model = new ScriptedModel([toolCall('leak', {}), 'sorry']);
      const result = await run(new Agent({ name: 'A', tools: [leak], model }), 'hi');
      expect(result.finalOutput).toBe('sorry');
      expect(outputsIn(model)).toEqual([fixed]);
      expect(
        JSON.stringify([model.calls.map((call) => call.request.input), result.newItems, recorder.spans]),
      ).not.toContain('x9-secret');
      expect(JSON.stringify(recorder.spans)).toContain('"leak"');
      const span = recorder.spans.find(({ type }) => type === 'function');
      expect(span?.error).toEqual({
        message: 'Error running tool (non-fatal)',
        data: { tool_name: 'leak', error: 'Tool execution failed. Error details are redacted.' },
      });
    });

    it('an approved call runs once, after the pause [TOOL-AC6]', async () => {
      let calls = 0;
      const refund = tool({ name: 'refund', needsApproval: true, execute: () => `refund ${++calls}` });
      const model = new ScriptedModel([toolCall('refund', {}), 'done']);
      const agent = new Agent({ name: 'A', tools: [refund], model });
      const paused = await run(agent, 'hi');
      expect(paused.interruptions).toHaveLength(1);
      expect(paused.newItems.some((item) => item.type === 'tool_call_output_item')).toBe(false);
      expect(calls).toBe(0);
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      const result = await run(agent, state);
      expect([result.finalOutput, calls]).toEqual(['done', 1]);
      expect(outputsIn(model)).toEqual(['refund 1']);
    });

    it('a rejected call gives the message of the person [TOOL-AC7]', async () => {
      let calls = 0;
      const refund = tool({ name: 'refund', needsApproval: true, execute: () => ++calls });
      const model = new ScriptedModel([toolCall('refund', {}), 'done']);
      const agent = new Agent({ name: 'A', tools: [refund], model });
      const state = (await run(agent, 'hi')).toState();
      for (const item of state.interruptions) state.reject(item, { message: 'not today' });
      await run(agent, state);
      expect(outputsIn(model)).toEqual(['not today']);
      expect(calls).toBe(0);
    });

    it('a free call beside a gated one runs once in all [TOOL-AC8]', async () => {
      const log: string[] = [];
      const make = (name: string, needsApproval: boolean) =>
        tool({ name, needsApproval, execute: () => void log.push(name) });
      const model = new ScriptedModel([[toolCall('a', {}), toolCall('b', {})], 'done']);
      const agent = new Agent({ name: 'A', tools: [make('a', true), make('b', false)], model });
      const state = (await run(agent, 'hi')).toState();
      expect(log).toEqual(['b']);
      for (const item of state.interruptions) state.approve(item);
      await run(agent, state);
      expect(log).toEqual(['b', 'a']);
    });

    it('defaults of the schema hold where the model gives null [TOOL-AC15]', async () => {
      const seen: unknown[] = [];
      const list = tool({
        name: 'list',
        parameters: z.object({ n: z.number().default(3) }),
        execute: (args) => void seen.push(args),
      });
      await run(
        new Agent({ name: 'A', tools: [list], model: new ScriptedModel([toolCall('list', { n: null }), 'ok']) }),
        'hi',
      );
      expect(seen).toEqual([{ n: 3 }]);
    });

    it('a policy sees what execute would get; arguments that cannot run ask nobody [TOOL-F33] [TOOL-F34] [TOOL-F40]', async () => {
      const asked: unknown[] = [];
      const list = tool({
        name: 'list',
        parameters: z.object({ n: z.coerce.number().default(3) }),
        needsApproval: (_ctx, args) => asked.push(args) > 99,
        execute: () => 'ran',
      });
      const model = new ScriptedModel([
        [
          toolCall('list', { n: null }),
          toolCall('list', { n: '4' }),
          toolCall('list', '{"n":'),
          toolCall('list', '{"n":1e999}'),
        ],
        'ok',
      ]);
      const result = await run(new Agent({ name: 'A', tools: [list], model }), 'hi');
      expect(result.status).toBe('completed');
      expect(asked).toEqual([{ n: 3 }, { n: 4 }]);
      expect(outputsIn(model)).toEqual(['ran', 'ran', fixed, fixed]);
    });

    it('broken arguments give the fixed text, and no payload to logs and spans [TOOL-AC16]', async () => {
      const list = tool({
        name: 'list',
        needsApproval: true,
        parameters: z.object({ n: z.number() }),
        execute: () => expect.unreachable(),
      });
      const model = new ScriptedModel([toolCall('list', '{"x9-secret":'), 'ok']);
      const result = await run(new Agent({ name: 'A', tools: [list], model }), 'hi');
      expect(result.status).toBe('completed');
      expect(outputsIn(model)).toEqual([fixed]);
      expect(JSON.stringify([logged, recorder.spans.map((span) => span.error)])).not.toContain('x9-secret');
    });

    it('arguments that do not fit are told by path and kind; the run’s formatter may say it otherwise [TOOL-F44] [TOOL-X16] [RUN-243]', async () => {
      const list = tool({ name: 'list', parameters: z.object({ n: z.number() }), execute: () => expect.unreachable() });
      const agent = new Agent({ name: 'A', tools: [list] });
      const model = new ScriptedModel([toolCall('list', { n: 'x9-secret' }), 'ok', toolCall('list', { n: 'x' }), 'ok']);
      await run(agent, 'hi', { model });
      expect(outputsIn(model)).toEqual([`${fixed} Invalid arguments: n: expected number`]);
      const kinds: unknown[] = [];
      await run(agent, 'hi', {
        model,
        toolErrorFormatter: ({ kind, defaultMessage, error }) => {
          kinds.push(kind, defaultMessage, error?.name);
          return 'use a number';
        },
      });
      expect(outputsIn(model)).toEqual(['use a number']);
      expect(kinds).toEqual(['tool_exception', `${fixed} Invalid arguments: n: expected number`, 'ModelBehaviorError']);
    });

    it('the formatter is not asked about tools with a failure function [TOOL-X16]', async () => {
      const own = tool({
        name: 'own',
        failureErrorFunction: (_ctx, error) => `own: ${error.message}`,
        execute: () => {
          throw new Error('full');
        },
      });
      const model = new ScriptedModel([toolCall('own', {}), 'ok']);
      await run(new Agent({ name: 'A', tools: [own], model }), 'hi', {
        toolErrorFormatter: () => expect.unreachable(),
      });
      expect(outputsIn(model)).toEqual(['own: full']);
    });

    it('failureErrorFunction null fails the run, with the tool and the cause [TOOL-AC17]', async () => {
      const cause = new Error('disk full');
      const save = tool({
        name: 'save',
        failureErrorFunction: null,
        execute: () => {
          throw cause;
        },
      });
      const error = await rejection(
        run(new Agent({ name: 'A', tools: [save], model: new ScriptedModel([toolCall('save', {})]) }), 'hi'),
      );
      expect(error).toBeInstanceOf(ToolCallError);
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ toolName: 'save', cause });
    });

    it('an async schema fails the run: no model can repair it [TOOL-F17]', async () => {
      const late = tool({
        name: 'late',
        parameters: z.object({ a: z.string().refine(async () => true) }),
        execute: () => 1,
      });
      const model = new ScriptedModel([toolCall('late', { a: 'x' })]);
      expect(await rejection(run(new Agent({ name: 'A', tools: [late], model }), 'hi'))).toBeInstanceOf(UserError);
    });

    it('an unknown tool fails the run, naming tool and agent [TOOL-AC18]', async () => {
      const error = await rejection(
        run(new Agent({ name: 'Desk', model: new ScriptedModel([toolCall('ghost', {})]) }), 'hi'),
      );
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toBe('Tool ghost not found in agent Desk');
    });

    it('an unknown tool is told to the model when the run says so; other calls run [TOOL-AC19]', async () => {
      const find = tool({ name: 'find', execute: () => 'found' });
      const model = new ScriptedModel([[toolCall('ghost', {}), toolCall('find', {})], 'ok']);
      const result = await run(new Agent({ name: 'A', tools: [find], model }), 'hi', {
        toolNotFoundBehavior: 'return_error_to_model',
      });
      expect(result.finalOutput).toBe('ok');
      expect(new Set(outputsIn(model))).toEqual(new Set(["Tool 'ghost' not found.", 'found']));
    });

    it('disabled tools are not sent and cannot be called [TOOL-F31]', async () => {
      const hidden = tool({
        name: 'hidden',
        isEnabled: (ctx: RunContext<{ admin: boolean }>) => ctx.context.admin,
        execute: () => 'ran',
      });
      const agent = new Agent({ name: 'A', tools: [hidden] });
      const model = new ScriptedModel([toolCall('hidden', {}), 'ok', toolCall('hidden', {})]);
      expect((await run(agent, 'hi', { model, context: { admin: true } })).finalOutput).toBe('ok');
      expect(model.calls[0]?.request.tools.map(({ name }) => name)).toEqual(['hidden']);
      const error = await rejection(run(agent, 'hi', { model, context: { admin: false } }));
      expect((error as Error).message).toBe('Tool hidden not found in agent A');
      expect(model.calls.at(-1)?.request.tools).toEqual([]);
    });

    it('of two tools with one name the last runs, with one warning in the whole run [TOOL-I2] [TOOL-I10]', async () => {
      const make = (output: string) => tool({ name: 'find', execute: () => output });
      const model = new ScriptedModel([toolCall('find', {}), toolCall('find', {}), 'ok']);
      const agent = new Agent({ name: 'A', tools: [make('first'), make('second')], model });
      await run(agent, 'hi');
      expect(outputsIn(model)).toEqual(['second', 'second']);
      expect(model.calls.map((call) => call.request.tools.length)).toEqual([1, 1, 1]);
      expect(logged.filter((line) => line.startsWith('warn'))).toHaveLength(1);
      const unused = new ScriptedModel(['no']);
      expect(await rejection(run(agent, 'hi', { model: unused, toolNameCollisionPolicy: 'error' }))).toBeInstanceOf(
        UserError,
      );
      expect(unused.calls).toEqual([]);
    });

    it('the model reads values as text, items keep them as they are [TOOL-R7] [TOOL-F41] [TOOL-R4]', async () => {
      const values = [[], undefined, { a: 1 }, 'x'];
      const give = tool({
        name: 'give',
        parameters: z.object({ index: z.int() }),
        execute: ({ index }) => values[index],
      });
      const model = new ScriptedModel([values.map((_, index) => toolCall('give', { index })), 'ok']);
      const result = await run(new Agent({ name: 'A', tools: [give], model }), 'hi');
      expect(outputsIn(model)).toEqual(['[]', '', '{"a":1}', 'x']);
      expect(result.newItems.flatMap((item) => (item.type === 'tool_call_output_item' ? [item.output] : []))).toEqual(
        values,
      );
    });

    it('a shape that strict output cannot have fails before the model is asked [TOOL-O4] [TOOL-O18]', async () => {
      const model = new ScriptedModel(['{}']);
      const agent = new Agent({ name: 'A', outputType: z.object({ m: z.record(z.string(), z.number()) }), model });
      const error = await rejection(run(agent, 'hi'));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/: m: /);
      expect(model.calls).toEqual([]);
    });
  });
});
