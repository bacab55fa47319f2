// Every promise of inference of agents, tools and output types, and every program that must not compile (`@ts-expect-error`).
/* oxlint-disable no-new, vitest/expect-expect -- the compiler asserts */
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import * as zm from 'zod/mini';
import { Agent } from '../src/agent/agent.ts';
import type { AgentOptions, AnyAgent } from '../src/agent/agent.ts';
import { handoff, Handoff } from '../src/agent/handoff.ts';
import type { HandoffInputFilter } from '../src/agent/handoff.ts';
import type { AgentHooks, RunHooks } from '../src/agent/hooks.ts';
import { invokeFunctionTool } from '../src/agent/invoke-function-tool.ts';
import { outputSchema } from '../src/agent/output.ts';
import { jsonSchema } from '../src/agent/schema.ts';
import { tool, toolFor } from '../src/agent/tool.ts';
import type { FunctionTool, OutputSchema, Tool, ToolCustomDataContext } from '../src/agent/tool.ts';
import type { RunOptions } from '../src/run/options.ts';
import { run } from '../src/run/run.ts';
import type { RunContext, ToolContext } from '../src/state/context.ts';

type Eq<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function yes<_T extends true>(): void;
type ContextOf<T> = T extends FunctionTool<infer C, never, unknown> ? C : T extends Agent<infer C, unknown> ? C : never;
type Out<T> = T extends Agent<never, infer O> ? O : never;

interface My {
  user: string;
  db: { query(sql: string): Promise<string[]> };
}
interface Less {
  user: string;
}
interface Other {
  tenant: number;
}
declare const my: My;

declare const weather: FunctionTool<unknown, { city: string; days: number }, string>;
declare const lookup: FunctionTool<My, { city: string }, Promise<string> extends Promise<infer R> ? R : never>;
const Mini = zm.object({ city: zm.string() });

describe('arguments', () => {
  test('come from any schema', () => {
    const made = tool({
      name: 'weather',
      parameters: z.object({ city: z.string(), days: z.number().default(3) }),
      execute: (a) => {
        yes<Eq<typeof a, { city: string; days: number }>>();
        return a.city;
      },
    });
    yes<Eq<typeof made, FunctionTool<unknown, { city: string; days: number }, string>>>();
    tool({ name: 'none', execute: (a) => yes<Eq<typeof a, {}>>() });
    tool({
      name: 'typed',
      parameters: jsonSchema<{ city: string }>({ type: 'object' }),
      execute: (a) => yes<Eq<typeof a, { city: string }>>(),
    });
    tool({
      name: 'raw',
      parameters: { type: 'object', properties: { a: { type: 'string' } } },
      execute: (a) => yes<Eq<typeof a, unknown>>(),
    });
    tool({
      name: 'arktype',
      parameters: type({ city: 'string' }),
      execute: (a) => yes<Eq<typeof a, { city: string }>>(),
    });
    tool({
      name: 'valibot',
      parameters: toStandardJsonSchema(v.object({ city: v.string() })),
      execute: (a) => yes<Eq<typeof a, { city: string }>>(),
    });
    tool({
      name: 'mini',
      parameters: jsonSchema(zm.toJSONSchema(Mini), { validate: (x) => zm.parse(Mini, x) }),
      execute: (a) => yes<Eq<typeof a, { city: string }>>(),
    });
    tool({ name: 'mini', parameters: zm.toJSONSchema(Mini), execute: (a) => yes<Eq<typeof a, { city: string }>>() });
  });

  test('do not come from a schema that only validates [TOOL-A26]', () => {
    // @ts-expect-error a schema that only validates gives the model nothing to fill in
    tool({ name: 'x', parameters: Mini, execute: ({ city }) => city });
    // @ts-expect-error the same
    tool({ name: 'x', parameters: v.object({ city: v.string() }), execute: ({ city }) => city });
    // @ts-expect-error the same
    new Agent({ name: 'x', outputType: Mini });
  });

  test('options of tools are known ones', () => {
    // @ts-expect-error unknown option
    tool({ name: 'x', inputSchema: z.object({}), execute: () => 1 });
    // @ts-expect-error no `execute`
    tool({ name: 'x' });
    // @ts-expect-error not built yet
    tool({ name: 'x', deferLoading: true, execute: () => 1 });
  });
});

describe('the context of a tool', () => {
  test('comes from the annotated callbacks, in any order', () => {
    const found = tool({
      name: 'lookup',
      parameters: z.object({ city: z.string() }),
      execute: async ({ city }, ctx: ToolContext<My>) => ctx.context.user + city,
    });
    yes<Eq<ContextOf<typeof found>, My>>();
    const gated = tool({
      name: 'gated',
      parameters: z.object({ amount: z.number() }),
      needsApproval: (_ctx, { amount }) => amount > 100,
      execute: ({ amount }, ctx: ToolContext<My>) => ctx.context.user + amount,
    });
    yes<Eq<ContextOf<typeof gated>, My>>();
    const both = tool({
      name: 'both',
      parameters: z.object({ amount: z.number() }),
      needsApproval: (ctx: RunContext<My>, { amount }) => ctx.context.user === 'x' && amount > 1,
      execute: ({ amount }, ctx: ToolContext<My>) => ctx.context.user + amount,
    });
    yes<Eq<ContextOf<typeof both>, My>>();
    const policyOnly = tool({
      name: 'policy',
      parameters: z.object({ amount: z.number() }),
      needsApproval: (ctx: RunContext<My>, { amount }) => ctx.context.user === 'x' && amount > 1,
      execute: ({ amount }) => amount,
    });
    yes<Eq<ContextOf<typeof policyOnly>, My>>();
    const enabled = tool({
      name: 'enabled',
      needsApproval: () => true,
      isEnabled: (ctx: RunContext<My>) => ctx.context.user === 'x',
      execute: () => 1,
    });
    yes<Eq<ContextOf<typeof enabled>, My>>();
    const noted = tool({
      name: 'noted',
      customDataExtractor: ({ context }: ToolCustomDataContext<My>) => ({ by: context.context.user }),
      execute: () => 1,
    });
    yes<Eq<ContextOf<typeof noted>, My>>();
    // @ts-expect-error custom data is JSON
    tool({ name: 'x', customDataExtractor: () => ({ at: new Date() }), execute: () => 1 });
    tool({
      name: 'unknown',
      needsApproval: (ctx) => {
        yes<Eq<typeof ctx.context, unknown>>();
        return true;
      },
      execute: () => 1,
    });
  });

  test('is given once by toolFor', () => {
    const myTool = toolFor<My>();
    const refund = myTool({
      name: 'refund',
      parameters: z.object({ amount: z.number() }),
      needsApproval: (ctx, { amount }, callId) => ctx.context.user === callId && amount > 1,
      isEnabled: (ctx, agent) => ctx.context.user === agent.name,
      failureErrorFunction: (ctx, error) => ctx.context.user + error.message,
      timeoutErrorFunction: (ctx, error) => `${ctx.context.user} ${error.timeoutMs}`,
      customDataExtractor: ({ context, output }) => ({ by: context.context.user, known: output !== undefined }),
      execute: ({ amount }, ctx) => ({ amount, by: ctx.context.user }),
    });
    yes<Eq<typeof refund, FunctionTool<My, { amount: number }, { amount: number; by: string }>>>();
  });
});

describe('the context of an agent', () => {
  test('comes from what it holds', () => {
    const one = new Agent({ name: 'a', tools: [lookup] });
    yes<Eq<typeof one, Agent<My, string>>>();
    yes<Eq<ContextOf<Agent<My>>, My>>();
    new Agent<My>({ name: 'a', tools: [weather] });
    const mixed = new Agent({ name: 'a', tools: [weather, lookup] });
    yes<Eq<ContextOf<typeof mixed>, My>>();
    const byText = new Agent({
      name: 'a',
      instructions: (ctx: RunContext<My>) => ctx.context.user,
      tools: [weather, lookup],
    });
    yes<Eq<ContextOf<typeof byText>, My>>();
    const byPrompt = new Agent({
      name: 'a',
      prompt: ({ context }: { context: RunContext<My> }) => ({ id: context.context.user, variables: { city: 'Kyiv' } }),
    });
    yes<Eq<ContextOf<typeof byPrompt>, My>>();
    new Agent<My>({ name: 'a', prompt: ({ context, agent }) => ({ id: context.context.user + agent.name }) });
    new Agent<My>({ name: 'a', instructions: (ctx) => ctx.context.user, tools: [weather, lookup] });
    new Agent<My>({
      name: 'a',
      tools: [
        tool({
          name: 'inline',
          parameters: z.object({ q: z.string() }),
          needsApproval: (_c, { q }) => q === '',
          execute: ({ q }, ctx) => ctx.context.user + q,
        }),
      ],
    });
    const viaHandoff = new Agent({ name: 'triage', handoffs: [one] });
    yes<Eq<ContextOf<typeof viaHandoff>, My>>();
    const viaBoth = new Agent({
      name: 'triage',
      handoffs: [one, handoff(one)],
      tools: [tool({ name: 'o', execute: (_, ctx: ToolContext<Other>) => ctx.context.tenant })],
    });
    yes<Eq<ContextOf<typeof viaBoth>, Other & My>>();
    const ta = tool({ name: 'a', execute: (_, ctx: ToolContext<{ a: string }>) => ctx.context.a });
    const tb = tool({ name: 'b', execute: (_, ctx: ToolContext<{ b: string }>) => ctx.context.b });
    new Agent<{ a: string } & { b: string }>({ name: 'x', tools: [ta, tb] });
    const optional = new Agent({
      name: 'o',
      instructions: (ctx: RunContext<My | undefined>) => ctx.context?.user ?? '',
    });
    yes<Eq<ContextOf<typeof optional>, My | undefined>>();
  });

  test('is not another one than it names', () => {
    // @ts-expect-error the tool needs My
    new Agent<Other>({ name: 'a', tools: [lookup] });
    // @ts-expect-error `db` is missing in Less
    new Agent<Less>({ name: 'a', tools: [lookup] });
    // @ts-expect-error the target of the handoff needs My
    new Agent<Less>({ name: 'a', handoffs: [new Agent({ name: 'b', tools: [lookup] })] });
    // @ts-expect-error misspelt option
    new Agent({ name: 'a', instruction: 'x' });
    const agentHooks: AgentHooks<My> = {
      onStart: async (ctx) => {
        await ctx.context.db.query('x');
      },
    };
    new Agent<My>({ name: 'a', hooks: agentHooks });
    // @ts-expect-error hooks need My
    new Agent<Less>({ name: 'a', hooks: agentHooks });
    const plain = new Agent({ name: 'plain' });
    // @ts-expect-error would need My
    plain.tools.push(lookup);
    plain.tools.push(weather);
  });
});

test('the final output has the type of the schema', () => {
  const plain = new Agent({ name: 'plain' });
  const a6 = new Agent({ name: 'x', outputType: z.object({ n: z.number() }) });
  yes<Eq<typeof a6, Agent<unknown, { n: number }>>>();
  yes<Eq<Out<typeof plain>, string>>();
  const texts = new Agent({ name: 'x', outputType: 'text' });
  yes<Eq<Out<typeof texts>, string>>();
  const ark = new Agent({ name: 'x', outputType: type({ n: 'number' }) });
  yes<Eq<Out<typeof ark>, { n: number }>>();
  const valibot = new Agent({ name: 'x', outputType: toStandardJsonSchema(v.object({ n: v.number() })) });
  yes<Eq<Out<typeof valibot>, { n: number }>>();
  const raw = new Agent({ name: 'x', outputType: jsonSchema<{ n: number }>({}) });
  yes<Eq<Out<typeof raw>, { n: number }>>();
  const loose = new Agent({
    name: 'x',
    outputType: outputSchema(z.object({ n: z.coerce.number() }), { strict: false }),
  });
  yes<Eq<Out<typeof loose>, { n: number }>>();
  const own = {} as OutputSchema<Date>;
  const dated = new Agent({ name: 'x', outputType: own });
  yes<Eq<Out<typeof dated>, Date>>();
  const list = new Agent({ name: 'x', outputType: z.array(z.int()) });
  yes<Eq<Out<typeof list>, number[]>>();
});

test('the final output is the union over the handoffs given to the constructor [RUN-1205] [TOOL-AC14]', async () => {
  const plain = new Agent({ name: 'plain' });
  const counted = new Agent({ name: 'x', outputType: z.object({ n: z.number() }) });
  const rated = new Agent({ name: 'r', outputType: z.object({ r: z.boolean() }) });
  const triage = new Agent({ name: 'triage', handoffs: [counted, plain, handoff(rated)] });
  yes<Eq<Out<typeof triage>, string | { n: number } | { r: boolean }>>();
  const result = await run(triage, 'x');
  yes<Eq<typeof result.finalOutput, string | { n: number } | { r: boolean } | undefined>>();
  // @ts-expect-error may be an object
  result.finalOutput?.toUpperCase();
  if (result.status === 'completed') yes<Eq<typeof result.lastAgent, Agent<unknown, Out<typeof triage>>>>();
  const chain = new Agent({ name: 'first', outputType: z.object({ first: z.literal(1) }), handoffs: [triage] });
  yes<Eq<Out<typeof chain>, string | { first: 1 } | { n: number } | { r: boolean }>>();
  const dynamic = new Handoff({
    toolName: 't',
    toolDescription: 'd',
    agentName: 'either',
    onInvokeHandoff: (ctx: RunContext<My>) => (ctx.context.user === 'x' ? counted : counted),
  });
  yes<Eq<typeof dynamic, Handoff<My, { n: number }>>>();
  new Agent<My, string | { n: number }>({ name: 'a', handoffs: [handoff(counted), plain, dynamic] });
  // @ts-expect-error the target's output is no string
  new Agent<My>({ name: 'a', handoffs: [handoff(counted)] });
  const one = new Agent({ name: 'c1' });
  const two = new Agent({ name: 'c2', handoffs: [one] });
  one.handoffs.push(two);
  // @ts-expect-error would make `{ n: number }` a lie
  counted.handoffs.push(plain);
  const rehanded = counted.clone({ handoffs: [plain] });
  yes<Eq<Out<typeof rehanded>, string | { n: number }>>();
});

describe('a handoff', () => {
  const counted = new Agent({ name: 'x', outputType: z.object({ n: z.number() }) });
  const reason = z.object({ reason: z.string() });

  test('its callback is needed with input, and gets it typed [TOOL-HO3]', () => {
    // @ts-expect-error `inputType` needs `onHandoff`
    handoff(counted, { inputType: reason });
    handoff(counted, {
      inputType: reason,
      onHandoff: (_ctx, input) => {
        yes<Eq<typeof input, { reason: string }>>();
      },
    });
    handoff(counted, {
      onHandoff: (ctx) => {
        yes<Eq<typeof ctx, RunContext<unknown>>>();
      },
    });
    // @ts-expect-error there is no input
    handoff(counted, { onHandoff: (_ctx, _input: string) => {} });
    // @ts-expect-error a schema that only validates
    handoff(counted, { inputType: Mini, onHandoff: () => {} });
    // @ts-expect-error handoffs wait for nobody
    handoff(counted, { needsApproval: true });
    const needy = handoff(counted, {
      inputType: reason,
      onHandoff: (ctx: RunContext<My>, input) => {
        void (ctx.context.user + input.reason);
      },
    });
    yes<Eq<typeof needy, Handoff<My, { n: number }>>>();
  });

  test('its filter gives what changes, or all of the data', () => {
    const onlyMessages: HandoffInputFilter = (data) => ({
      newItems: data.newItems.filter(({ type: kind }) => kind === 'message_output_item'),
    });
    handoff(new Agent({ name: 'a', tools: [lookup] }), { inputFilter: onlyMessages });
    handoff(counted, { inputFilter: (data) => ({ ...data, newItems: [] }) });
    // @ts-expect-error not a member of a patch
    handoff(counted, { inputFilter: () => ({ history: [] }) });
    // @ts-expect-error nothing can be changed in place
    handoff(counted, { inputFilter: (data) => ({ newItems: data.newItems.splice(0) }) });
  });

  test('the options of a run', () => {
    const options: RunOptions<My> = {
      handoffInputFilter: ({ context }) => (context.context.user === 'x' ? {} : { newItems: [] }),
      nestHandoffHistory: true,
      handoffHistoryMapper: (transcript) => transcript.slice(-2),
      handoffHistoryMarkers: { start: '<a>', end: '</a>' },
      hooks: { onHandoff: (ctx, from, to) => void (ctx.context.user + from.name + to.name) },
    };
    // @ts-expect-error both markers
    options.handoffHistoryMarkers = { start: '<a>' };
  });
});

test('what needs less and gives less fits everywhere', () => {
  const a3 = new Agent({ name: 'a', tools: [lookup] });
  const a6 = new Agent({ name: 'x', outputType: z.object({ n: z.number() }) });
  const plain = new Agent({ name: 'plain' });
  const list: AnyAgent[] = [
    a3,
    a6,
    plain,
    new Agent<My | undefined, Date>({ name: 'x', outputType: {} as OutputSchema<Date> }),
  ];
  const team: Agent<My, unknown>[] = [a3, a6, plain];
  function named(agent: AnyAgent): string {
    return agent.name + agent.tools.length + agent.handoffs.length;
  }
  named(list[0] ?? team[0]!);
  new Agent<My>({ name: 'a', handoffs: [plain] });
  new Agent<My>({ name: 'a', handoffs: [handoff(plain)] });
  const toolbox: Tool<My>[] = [weather, lookup];
  const anyTools: Tool<never>[] = toolbox;
  const hooks: RunHooks = {
    onAgentStart(ctx, agent) {
      void ctx.usage;
      void agent.name;
    },
    onToolStart(ctx, _agent, t) {
      void (ctx.toolCallId + t.type);
    },
  };
  class Desk extends Agent<My, string> {
    readonly extra = 1;
  }
  const desk = new Desk({ name: 's', tools: [lookup] });
  const something: unknown = desk;
  if (something instanceof Agent) named(something);
  function make(o: AgentOptions<My>): Agent<My> {
    return new Agent<My>(o);
  }
  make({ name: 'x', tools: [lookup] });
  expectTypeOf(desk.extra).toBeNumber();
  void [anyTools, hooks];
});

test('a clone has the type of its overrides [TOOL-A4]', () => {
  const a3 = new Agent({ name: 'a', tools: [lookup] });
  const a6 = new Agent({ name: 'x', outputType: z.object({ n: z.number() }) });
  const cloned = a6.clone({ outputType: z.object({ m: z.string() }) });
  yes<Eq<Out<typeof cloned>, { m: string }>>();
  const renamed = a6.clone({ name: 'y' });
  yes<Eq<typeof renamed, Agent<unknown, { n: number }>>>();
  const retooled = a6.clone({ tools: [lookup] });
  yes<Eq<typeof retooled, Agent<My, { n: number }>>>();
  const mine = a3.clone({ instructions: (ctx) => ctx.context.user });
  yes<Eq<typeof mine, Agent<My, string>>>();
});

test('helpers keep types', async () => {
  const result = await invokeFunctionTool(lookup, { city: 'Kyiv' }, { context: my });
  yes<Eq<typeof result, string>>();
  // @ts-expect-error `town`
  void invokeFunctionTool(lookup, { town: 'Kyiv' }, { context: my });
  // @ts-expect-error needs My
  void invokeFunctionTool(lookup, { city: 'Kyiv' });
  void invokeFunctionTool(weather, '{"city":"Kyiv"}');
  const copy = lookup.copyWith({ name: 'find', needsApproval: (ctx, { city }) => ctx.context.user === city });
  yes<Eq<typeof copy, typeof lookup>>();
});
