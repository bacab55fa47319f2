import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, configureLogging, RunContext, tool } from '../index.ts';
import type { FunctionTool, LogRecord, RunOptions, ToolErrorArgs, ToolErrorFormatter } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

const fixed = 'An error occurred while running the tool. Please try again.';
const secret = new Error('x9-secret');
function boom(): never {
  throw secret;
}

bothForms((runForm, form) => {
  /** What the model read of one call, what the formatter was asked, and the errors in the log. */
  const play = async (
    one: FunctionTool<unknown> | undefined,
    formatter?: ToolErrorFormatter,
    options: RunOptions = {},
    call = toolCall('t', { n: 1 }, { callId: 'c' }),
  ) => {
    const records: LogRecord[] = [];
    configureLogging({ sink: (record) => void records.push(record) });
    const asked: ToolErrorArgs[] = [];
    const model = new ScriptedModel([call, 'done']);
    const agent = new Agent({ name: 'A', model, tools: one ? [one] : [] });
    const result = await runForm(agent, 'go', {
      ...options,
      toolErrorFormatter: formatter && ((args) => (asked.push(args), formatter(args))),
    });
    expect(result.finalOutput).toBe('done');
    const last = model.calls[1]?.request.input.at(-1) as { output?: unknown } | undefined;
    const ofFormatter = records.filter(({ level, message }) => level === 'error' && message.includes('Formatter'));
    return { output: last?.output, asked, errors: ofFormatter.length, result };
  };
  const failing = tool({ name: 't', execute: boom });
  const typed = tool({ name: 't', parameters: z.object({ n: z.string() }), execute: () => 'never' });

  describe(`the text of a failing tool (${form})`, () => {
    it.each([
      ['of a throw is fixed', failing, fixed],
      ['of wrong arguments tells paths and kinds', typed, `${fixed} Invalid arguments: n: expected string`],
    ])('%s, and tells nothing of the exception [RUN#94, RUN-243, TOOL-F19]', async (_, one, expected) => {
      expect(await play(one)).toMatchObject({ output: expected, errors: 0 });
      configureLogging({ dontLogToolData: false });
      expect((await play(one)).output).toBe(expected);
    });

    const answers: [string, ToolErrorFormatter, string, number][] = [
      ['its text, a promise of it too', async () => 'say it so', 'say it so', 0],
      ['an empty text', () => '', '', 0],
      ['nothing: the default', () => undefined, fixed, 0],
      ['something else: the default, and a line in the log', (() => 5) as never, fixed, 1],
      ['a throw: the default, and a line in the log', boom, fixed, 1],
      ['a rejection: the default, and a line in the log', () => Promise.reject(secret), fixed, 1],
    ];
    it.each(answers)(
      'is what the formatter gives: %s [RUN#94, RUN-209, RUN-241, RUN-243]',
      async (_, formatter, expected, errors) => {
        const played = await play(failing, formatter);
        expect([played.output, played.errors]).toEqual([expected, errors]);
        const [asked, ...more] = played.asked;
        expect(more).toEqual([]);
        expect(asked).toEqual({
          kind: 'tool_exception',
          toolType: 'function',
          toolName: 't',
          callId: 'c',
          defaultMessage: fixed,
          error: secret,
          context: played.result.context,
        });
        expect(asked?.error).toBe(secret);
        expect(asked?.context).toBeInstanceOf(RunContext);
      },
    );

    it('is its own business where the tool has a failure function, or took too long [RUN#94, RUN-243]', async () => {
      const own = tool({ name: 't', failureErrorFunction: () => 'own', execute: boom });
      const slow = tool({ name: 't', timeoutMs: 5, execute: () => new Promise<string>(() => undefined) });
      for (const one of [own, slow]) {
        const { output, asked } = await play(one, () => 'of the formatter');
        expect(asked).toEqual([]);
        expect(output).not.toBe('of the formatter');
      }
    });
  });

  describe(`other texts (${form})`, () => {
    it('of a missing tool and of a rejection come from the formatter too, without an error [RUN-209, RUN-241, RUN-242]', async () => {
      const options = { toolNotFoundBehavior: 'return_error_to_model' } as const;
      expect((await play(undefined, undefined, options)).output).toBe("Tool 't' not found.");
      const missing = await play(undefined, ({ kind }) => kind, options);
      expect(missing.output).toBe('tool_not_found');
      expect(missing.asked).toMatchObject([{ error: undefined, defaultMessage: "Tool 't' not found." }]);
      const gated = effectTool('t', [], { needsApproval: true });
      const reject: RunOptions = { onApproval: () => ({ type: 'reject' }) };
      expect((await play(gated, undefined, reject)).output).toBe('Tool execution was not approved.');
      const rejected = await play(gated, ({ kind }) => kind, reject);
      expect(rejected.output).toBe('approval_rejected');
      expect(rejected.asked).toMatchObject([{ error: undefined, callId: 'c' }]);
      const said = await play(gated, ({ kind }) => kind, {
        onApproval: () => ({ type: 'reject', message: 'not today' }),
      });
      expect([said.output, said.asked]).toEqual(['not today', []]);
    });
  });
});
