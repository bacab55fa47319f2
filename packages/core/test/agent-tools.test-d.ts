// What the types of agent tools promise, and programs that must not compile.
/* oxlint-disable no-new, vitest/expect-expect -- the compiler asserts */
import { describe, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { Agent, handoff } from '../src/index.ts';
import type {
  AgentInputItem,
  AgentToolResult,
  AnyAgent,
  FunctionTool,
  JsonSchema,
  RunStreamEvent,
} from '../src/index.ts';
import type { ResponseFunctionToolCall } from '../src/items/wire.ts';

interface My {
  user: string;
}
declare const my: Agent<My, { n: number }>;
const plain = new Agent({ name: 'A' });

describe('asTool', () => {
  test('takes one input without parameters, and is a tool of the context that its agent needs', () => {
    expectTypeOf(plain.asTool()).toEqualTypeOf<FunctionTool<unknown, { input: string }, string>>();
    expectTypeOf(my.asTool()).toEqualTypeOf<FunctionTool<My, { input: string }, string>>();
    new Agent<My>({ name: 'B', tools: [my.asTool(), plain.asTool()] });
    // @ts-expect-error -- an agent without context cannot call one that needs it
    new Agent<unknown>({ name: 'B', tools: [my.asTool()] });
  });

  test('arguments come from `parameters`, in every callback', () => {
    const made = my.asTool({
      parameters: z.object({ q: z.string(), days: z.int().default(1) }),
      inputBuilder: ({ params, summary, jsonSchema }) => {
        expectTypeOf(params).toEqualTypeOf<{ q: string; days: number }>();
        expectTypeOf(summary).toEqualTypeOf<string | undefined>();
        expectTypeOf(jsonSchema).toEqualTypeOf<JsonSchema | undefined>();
        return [{ role: 'user', content: params.q }] satisfies AgentInputItem[];
      },
      needsApproval: (ctx, args, callId) => {
        expectTypeOf(ctx.context).toEqualTypeOf<My>();
        expectTypeOf(args).toEqualTypeOf<{ q: string; days: number }>();
        return callId === '';
      },
      isEnabled: (ctx) => ctx.context.user !== '',
      failureErrorFunction: (ctx, error) => `${ctx.context.user} ${error.message}`,
    });
    expectTypeOf(made).toEqualTypeOf<FunctionTool<My, { q: string; days: number }, string>>();
    // @ts-expect-error -- no member of that name
    plain.asTool({ parameters: z.object({ q: z.string() }), inputBuilder: ({ params }) => params.input });
    // @ts-expect-error -- no such option
    plain.asTool({ name: 'x' });
  });

  test('the extractor gets the output of the agent, handoffs included, and the call', () => {
    my.asTool({
      customOutputExtractor: (result) => {
        expectTypeOf(result).toEqualTypeOf<AgentToolResult<My, { n: number }>>();
        expectTypeOf(result.finalOutput).toEqualTypeOf<{ n: number }>();
        return result.agentToolInvocation.toolCallId;
      },
    });
    const both = new Agent({ name: 'C', outputType: z.object({ ok: z.boolean() }), handoffs: [plain, handoff(my)] });
    both.asTool({
      customOutputExtractor: ({ finalOutput }) => {
        expectTypeOf(finalOutput).toEqualTypeOf<{ ok: boolean } | string | { n: number }>();
        return '';
      },
    });
    // @ts-expect-error -- text, or a promise of it
    plain.asTool({ customOutputExtractor: () => 7 });
  });

  test('events come with the agent that speaks and the call', () => {
    plain.asTool({
      onStream: ({ event, agent, toolCall }) => {
        expectTypeOf(event).toEqualTypeOf<RunStreamEvent>();
        expectTypeOf(agent).toEqualTypeOf<AnyAgent>();
        expectTypeOf(toolCall).toEqualTypeOf<ResponseFunctionToolCall>();
      },
    });
  });

  test('options of its runs are those of a run, without what the outer run has', () => {
    my.asTool({ run: { maxTurns: null, hooks: { onAgentStart: (ctx) => void ctx.context.user } } });
    // @ts-expect-error -- the outer run's
    my.asTool({ run: { context: { user: 'u' } } });
    // @ts-expect-error -- the outer run's
    my.asTool({ run: { signal: new AbortController().signal } });
    // @ts-expect-error -- the outer run's
    my.asTool({ run: { onApproval: () => undefined } });
  });
});
