import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, jsonSchema, tool } from '../index.ts';
import type { FunctionTool } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { kindsOf } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

const optionalId = z.object({ id: z.string().default('default') });
const requiredId = z.object({ id: z.string() });

bothForms((runForm, form) => {
  /** One call with these arguments, and what became of it. */
  async function called(gated: FunctionTool<never>, args: string) {
    const model = new ScriptedModel([toolCall(gated.name, args, { callId: 'c1' }), 'done']);
    const result = await runForm(new Agent({ name: 'A', model, tools: [gated as never] }), 'go');
    const output = model.calls[1]?.request.input.find((item) => item.type === 'function_call_output');
    return { result, model, output: output && 'output' in output ? (output.output as string) : undefined };
  }

  describe(`arguments that cannot run (${form})`, () => {
    const texts = ['null', '[]', '{', '{"x":NaN}', '{"id":7}'];

    it.each(texts)('ask no policy and no person, and go back to the model: %s [STATE#54]', async (args) => {
      for (const needsApproval of [true, (): never => expect.unreachable('the policy was asked')]) {
        const ran: string[] = [];
        const gated = tool({ name: 'gated', parameters: requiredId, needsApproval, execute: () => ran.push('ran') });
        const { result, model, output } = await called(gated, args);
        expect([result.status, result.finalOutput, ran]).toEqual(['completed', 'done', []]);
        expect(result.newItems.map((item) => item.type)).not.toContain('tool_approval_item');
        expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fco');
        expect(output).toMatch(/^An error occurred/);
      }
    });

    it('are none where the schema fills them in: the policy is asked about the whole value [STATE#54]', async () => {
      const asked: unknown[] = [];
      const gated = tool({
        name: 'gated',
        parameters: optionalId,
        needsApproval: (_ctx, args) => asked.push(args) > 0,
        execute: () => 'ran',
      });
      const { result } = await called(gated, '{}');
      expect([result.status, asked]).toEqual(['interrupted', [{ id: 'default' }]]);
    });
  });

  describe(`a policy (${form})`, () => {
    const cases: readonly (readonly [string, FunctionToolParameters, string, unknown])[] = [
      ['has a default filled in', optionalId, '{}', { id: 'default' }],
      ['is coerced', z.object({ n: z.coerce.number() }), '{"n":"1"}', { n: 1 }],
      ['loses a member', requiredId, '{"id":"a","more":1}', { id: 'a' }],
      [
        'is transformed',
        z.object({ id: z.string().transform((id) => ({ wrapped: id })) }),
        '{"id":"a"}',
        { id: { wrapped: 'a' } },
      ],
      ['stays as it is', requiredId, '{"id":"a"}', { id: 'a' }],
    ];

    it.each(cases)(
      'is asked about a copy of what would run, when it %s; its word counts [STATE#119]',
      async (_, parameters, args, value) => {
        for (const verdict of [true, false]) {
          const asked: unknown[] = [];
          const ran: unknown[] = [];
          const gated = tool({
            name: 'gated',
            parameters: parameters,
            strict: false,
            needsApproval: (_ctx, given) => {
              asked.push(structuredClone(given));
              wreck(given);
              return verdict;
            },
            execute: (given) => void ran.push(given),
          });
          const { result } = await called(gated, args);
          expect([asked, result.status]).toEqual([[value], verdict ? 'interrupted' : 'completed']);
          expect(ran).toEqual(verdict ? [] : [value]);
        }
      },
    );

    it('is not asked about arguments that do not validate: the model gets the text of the failure [STATE#119]', async () => {
      const asked: unknown[] = [];
      const gated = tool({
        name: 'gated',
        parameters: jsonSchema<{ id: string }>(
          {
            type: 'object',
            properties: { id: { type: 'string' } },
            required: ['id'],
            additionalProperties: false,
          },
          {
            validate: () => {
              throw new Error('id must be a text');
            },
          },
        ),
        needsApproval: () => asked.push('asked') > 0,
        execute: () => asked.push('ran'),
      });
      const { result, output } = await called(gated, '{"id":7}');
      expect([result.status, asked]).toEqual(['completed', []]);
      expect(output).toMatch(/^An error occurred.*Invalid arguments/s);
    });
  });
});

type FunctionToolParameters = z.ZodObject;

function wreck(value: object): void {
  for (const key of Object.keys(value)) Object.assign(value, { [key]: 'changed by the policy' });
}
