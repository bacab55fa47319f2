import * as z from 'zod';
import { Agent, defineModel, handoff, Handoff, tool, toUsage } from '../../src/index.ts';
import type {
  AgentInputItem,
  FunctionTool,
  InputGuardrail,
  MaybePromise,
  Model,
  ModelResponse,
  OutputGuardrail,
  RunOptions,
  ToolContext,
  ToolInputGuardrail,
  ToolOutputGuardrail,
} from '../../src/index.ts';
import { text, toolCall } from '../../src/testing/index.ts';
import { idle } from '../run-kit.ts';
import { callsOf } from './plan.ts';
import type { Call, Fault, Plan, Turn } from './plan.ts';
import { siteOf } from './sites.ts';
import type { AnywhereName, SiteName } from './sites.ts';
import { hash, thrownBy, trips } from './misbehave.ts';
import { poison } from './poison.ts';

/** A fault that happened, and what was thrown, if anything. */
export interface Fired {
  readonly fault: Fault;
  readonly thrown: unknown;
  /** It came at a time when an abort was on its way already. */
  readonly late: boolean;
}

/** The agents, models and callbacks of one plan, and what was seen of them. One for each form of a run. */
export class World {
  readonly plan: Plan;
  readonly start: Agent;
  readonly agents: readonly Agent[];
  readonly inner: readonly Agent[];
  readonly broken: string[] = [];
  /** How often bodies began, by id of their call. */
  readonly starts: Map<string, number> = new Map();
  /** Bodies that may begin once more than once. */
  readonly reruns: Map<string, number> = new Map();
  readonly fired: Fired[] = [];
  /** Lists that models were given, as text. */
  readonly seen: string[] = [];
  /** Stops the running segment, as its form can. */
  stop: (kind: 'hang' | 'cancel' | 'late') => void = () => undefined;
  stopped = false;
  /** Calls in doubt run again by themselves. */
  retries = false;
  readonly #calls: ReadonlyMap<string, Call>;
  readonly #counts = new Map<SiteName, number>();
  readonly #done = new Set<Fault>();
  #late: (() => void)[] = [];

  constructor(plan: Plan) {
    this.plan = plan;
    this.#calls = new Map(callsOf(plan.turns).map((call) => [call.id, call]));
    this.inner = ['N', 'M'].map((name) => this.#agent(name, true));
    this.#connect(this.inner, true);
    this.agents = ['A', 'B', 'C'].map((name) => this.#agent(name, false));
    this.#connect(this.agents, false);
    this.start = this.agents[0] as Agent;
  }

  call(id: string): Call {
    const call = this.#calls.get(id);
    if (call === undefined) throw new Error(`There is no call ${id}.`);
    return call;
  }

  has(site: SiteName): boolean {
    return this.plan.sites.has(site);
  }

  /** The segment is over: what nobody waits for any more comes to its end. */
  async releaseLate(): Promise<boolean> {
    const late = this.#late.splice(0);
    for (const release of late) release();
    if (late.length > 0) await idle(3);
    return late.length > 0;
  }

  /** Each call of what a user wrote goes through here: it gives what it should, or misbehaves. */
  at<T>(site: SiteName, args: readonly unknown[], normal: () => T): T {
    const count = this.#counts.get(site) ?? 0;
    this.#counts.set(site, count + 1);
    const fault = this.plan.faults.find(
      (planned) => planned.site === site && planned.nth === count && !this.#done.has(planned),
    );
    // What still goes on in a run that was stopped is not disturbed: it would be nobody's.
    if (fault === undefined || this.stopped) return this.#inTime(site, count, normal);
    this.#done.add(fault);
    return this.#misbehave(fault, args, normal) as T;
  }

  /** Half of the callbacks answer later, where they may; those of events only at first: there are hundreds. */
  #inTime<T>(site: SiteName, count: number, normal: () => T): T {
    const value = normal();
    if (
      siteOf[site].sync ||
      (site === 'onStream' && count > 4) ||
      value instanceof Promise ||
      hash(`${this.plan.seed} ${site}`) % 2 === 0
    )
      return value;
    return idle(1 + (count % 2)).then(() => value) as T;
  }

  #misbehave(fault: Fault, args: readonly unknown[], normal: () => unknown): unknown {
    const { site, kind, variant } = fault;
    const note = (thrown?: unknown): void => void this.fired.push({ fault, thrown, late: this.stopped });
    const error = thrownBy(fault, this.plan.seed);
    switch (kind) {
      case 'throw':
        note(error);
        throw error;
      case 'reject':
        note(error);
        if (variant % 3 === 0) return Promise.reject(error);
        return idle(1 + (variant % 4)).then(() => Promise.reject(error));
      case 'wrong': {
        note();
        const { values = [undefined] } = siteOf[site];
        const value = values[variant % values.length];
        if (siteOf[site].sync && variant % 3 === 0) return Promise.reject(error);
        return variant % 2 === 0 || siteOf[site].sync ? value : Promise.resolve(value);
      }
      case 'mutate': {
        const value = normal();
        note();
        for (const arg of args) poison(arg);
        return value;
      }
      case 'trip':
        note();
        return trips(site, variant);
      case 'hang':
      case 'cancel':
      case 'late': {
        note();
        // This segment's: another end may come before.
        const { stop } = this;
        void idle(1 + (variant % 3)).then(() => stop(kind));
        if (kind !== 'late') return new Promise(() => {});
        return new Promise((resolve, reject) => {
          this.#late.push(() => (variant % 2 === 0 ? resolve(trips(site, 1)) : reject(error)));
        });
      }
      default:
        return kind satisfies never;
    }
  }

  // ---- agents

  #agent(name: string, nested: boolean): Agent {
    const at = this.#from(nested);
    const has = (site: AnywhereName): boolean => this.has(at.name(site));
    const input = (site: AnywhereName, runInParallel: boolean): InputGuardrail[] =>
      has(site)
        ? [
            {
              name: site,
              runInParallel,
              execute: (args) => at.call(site, [args], () => ({ tripwireTriggered: false })),
            },
          ]
        : [];
    const output: OutputGuardrail[] = has('guardrail.output')
      ? [
          {
            name: 'out',
            execute: (args) => at.call('guardrail.output', [args], () => ({ tripwireTriggered: false })),
          },
        ]
      : [];
    return new Agent({
      name,
      model: this.#model(nested),
      tools: this.#tools(nested),
      inputGuardrails: [...input('guardrail.input.blocking', false), ...input('guardrail.input.parallel', true)],
      outputGuardrails: output,
      ...(has('instructions') && {
        instructions: () => at.call('instructions', [], () => `You are ${name}.`),
      }),
      ...(has('toolUseBehavior') && {
        toolUseBehavior: (_ctx: unknown, results: readonly { runItem: { callId?: string | undefined } }[]) =>
          at.call('toolUseBehavior', [results], () =>
            !nested && this.plan.endsByTool && results.some(({ runItem }) => this.#isLast(runItem.callId ?? ''))
              ? { isFinalOutput: true, finalOutput: 'done by tool' }
              : { isFinalOutput: false },
          ),
      }),
      hooks: this.#hooks('agent', nested, agentHooks),
    });
  }

  #isLast(callId: string): boolean {
    return this.plan.turns.at(-1)?.calls.some(({ id }) => id === callId) ?? false;
  }

  #from(nested: boolean): {
    name: (site: AnywhereName) => SiteName;
    call: <T>(site: AnywhereName, args: readonly unknown[], normal: () => T) => T;
  } {
    const name = (site: AnywhereName): SiteName => (nested ? `nested.${site}` : site);
    return { name, call: (site, args, normal) => this.at(name(site), args, normal) };
  }

  #hooks(of: 'run' | 'agent', nested: boolean, names: readonly string[]): object {
    const at = this.#from(nested);
    const own = names.filter((name) => this.has(at.name(`${of}.${name}` as AnywhereName)));
    const entries = (own.length > 0 ? own : [names[0] as string]).map((name) => [
      name,
      (_ctx: unknown, ...args: unknown[]) =>
        own.includes(name) ? at.call(`${of}.${name}` as AnywhereName, args, () => undefined) : undefined,
    ]);
    return Object.fromEntries(entries);
  }

  #connect(agents: readonly Agent[], nested: boolean): void {
    const at = this.#from(nested);
    const has = (site: AnywhereName): boolean => this.has(at.name(site));
    for (const [from, agent] of agents.entries())
      for (const [to, target] of agents.entries()) {
        const shared = {
          ...(has('handoff.isEnabled') && {
            isEnabled: () => at.call('handoff.isEnabled', [], () => true),
          }),
          ...(has('handoff.inputFilter') && {
            inputFilter: (data: object) => at.call('handoff.inputFilter', [data], () => ({})),
          }),
        };
        agent.handoffs.push(
          // Of such a handoff nobody knows the target: some other one must lead there.
          has('handoff.onInvokeHandoff') && (from + to) % 2 === 0
            ? new Handoff({
                toolName: `transfer_to_${target.name.toLowerCase()}`,
                toolDescription: '',
                agentName: target.name,
                onInvokeHandoff: () => at.call('handoff.onInvokeHandoff', [], () => target),
                ...shared,
              })
            : handoff(target, {
                ...shared,
                ...(has('handoff.onHandoff') && {
                  onHandoff: () => at.call('handoff.onHandoff', [], () => undefined),
                }),
              }),
        );
      }
  }

  // ---- tools

  #tools(nested: boolean): FunctionTool[] {
    const tools = [this.#tool('free', nested), this.#tool('gated', nested), this.#tool('asked', nested)];
    return nested ? tools : [...tools, this.#agentTool()];
  }

  #tool(kind: 'free' | 'gated' | 'asked', nested: boolean): FunctionTool {
    const at = this.#from(nested);
    const has = (site: AnywhereName): boolean => this.has(at.name(site));
    const { toolsThrow } = this.plan;
    const allow = { behavior: { type: 'allow' } } as const;
    const before: ToolInputGuardrail[] = has('guardrail.tool.input')
      ? [{ name: 'before', execute: (args) => at.call('guardrail.tool.input', [args], () => allow) }]
      : [];
    const after: ToolOutputGuardrail[] = has('guardrail.tool.output')
      ? [{ name: 'after', execute: (args) => at.call('guardrail.tool.output', [args], () => allow) }]
      : [];
    const asks = (_ctx: unknown, args: object) => at.call('tool.needsApproval', [args], () => true);
    return tool({
      name: kind,
      parameters: z.object({ id: z.string() }),
      needsApproval: kind === 'gated' ? true : kind === 'asked' ? asks : false,
      inputGuardrails: before,
      outputGuardrails: after,
      ...(has('tool.isEnabled') && { isEnabled: () => at.call('tool.isEnabled', [], () => true) }),
      ...(has('tool.customDataExtractor') && {
        customDataExtractor: (data: object) => at.call('tool.customDataExtractor', [data], () => ({ kind })),
      }),
      failureErrorFunction: toolsThrow
        ? null
        : has('tool.failureErrorFunction')
          ? () => at.call('tool.failureErrorFunction', [], () => 'failed')
          : undefined,
      execute: (args, _ctx: ToolContext) => {
        const { id } = args;
        this.#begin(id);
        return at.call('tool.execute', [args], () => {
          const { slow } = this.call(id);
          return slow === 0 ? `${id} ok` : idle(slow).then(() => `${id} ok`);
        });
      },
    });
  }

  #begin(id: string): void {
    const starts = (this.starts.get(id) ?? 0) + 1;
    this.starts.set(id, starts);
    if (starts > 1 + (this.reruns.get(id) ?? 0)) this.broken.push(`${id} begins again, and nobody said so`);
  }

  #agentTool(): FunctionTool {
    const { agentToolsThrow } = this.plan;
    const [agent] = this.inner as [Agent];
    const filter = this.has('nested.callModelInputFilter');
    return agent.asTool({
      toolName: 'inner',
      run: {
        hooks: this.#hooks('run', true, runHooks),
        maxTurns: null,
        ...(filter && { callModelInputFilter: (args) => this.#filter('nested.callModelInputFilter', args) }),
      },
      needsApproval: this.has('agentTool.needsApproval')
        ? (_ctx, args) => this.at('agentTool.needsApproval', [args], () => false)
        : false,
      ...(this.has('agentTool.isEnabled') && { isEnabled: () => this.at('agentTool.isEnabled', [], () => true) }),
      ...(this.has('customOutputExtractor') && {
        customOutputExtractor: (result) => this.at('customOutputExtractor', [result], () => result.finalOutput),
      }),
      ...(this.has('inputBuilder') && {
        inputBuilder: (args) => this.at('inputBuilder', [args], () => args.params.input),
      }),
      ...(this.has('onStream') && {
        onStream: (args) => this.at('onStream', [args], () => undefined),
      }),
      failureErrorFunction: agentToolsThrow
        ? null
        : this.has('agentTool.failureErrorFunction')
          ? () => this.at('agentTool.failureErrorFunction', [], () => 'failed')
          : undefined,
    });
  }

  // ---- models

  /** Answers with the first turn whose calls it has not seen, so that it may be asked again. */
  #model(nested: boolean): Model {
    const reply = (list: readonly AgentInputItem[]): object[] => {
      const seen = JSON.stringify(list);
      this.seen.push(seen);
      const turns = nested ? this.call(/for (c\d+_\d+)/.exec(seen)?.[1] ?? '').turns : this.plan.turns;
      const known = new Set((nested ? seen.match(/kc\d+_\d+x\d+_\d+/g) : seen.match(/\bc\d+_\d+/g)) ?? []);
      const index = turns.findLastIndex(({ calls }) => calls.some(({ id }) => known.has(id))) + 1;
      const turn: Turn | undefined = turns[index];
      if (turn === undefined) return [{ ...text(nested ? 'inner done' : 'done'), id: 'msg_end' }];
      return [
        ...(turn.says ? [{ ...text(`turn ${index}`), id: `msg_${turn.calls[0]?.id}` }] : []),
        ...turn.calls.map((call) => this.#wire(call, nested)),
      ];
    };
    return defineModel({
      getResponse: async ({ input }) => {
        const answer = (): MaybePromise<ModelResponse> => ({
          output: reply(input) as ModelResponse['output'],
          usage: toUsage({ requests: 1 }),
          responseId: 'resp',
        });
        return await (nested ? this.at('agentTool.model', [], answer) : answer());
      },
    });
  }

  #wire({ id, kind, target }: Call, nested: boolean): object {
    if (kind === 'inner') return toolCall('inner', { input: `for ${id}` }, { callId: id });
    if (kind !== 'handoff') return toolCall(kind, { id }, { callId: id });
    const { name } = (nested ? this.inner : this.agents)[target] as Agent;
    return toolCall(`transfer_to_${name.toLowerCase()}`, {}, { callId: id });
  }

  // ---- options

  #filter(
    site: SiteName,
    args: Parameters<NonNullable<RunOptions['callModelInputFilter']>>[0],
  ): ReturnType<NonNullable<RunOptions['callModelInputFilter']>> {
    const { modelData } = args;
    return this.at(site, [modelData], () => ({ ...modelData, input: [...modelData.input] }));
  }

  /** Options of a segment without those of its form. */
  options(): RunOptions {
    const { nests, preApproval, concurrency, doubt } = this.plan;
    return {
      hooks: this.#hooks('run', false, runHooks),
      onInDoubt: doubt === 'retry' ? 'retry' : 'interrupt',
      nestHandoffHistory: nests,
      toolExecution: { preApprovalToolInputGuardrails: preApproval, maxFunctionToolConcurrency: concurrency },
      ...(this.has('callModelInputFilter') && {
        callModelInputFilter: (args) => this.#filter('callModelInputFilter', args),
      }),
      ...(this.has('run.handoffInputFilter') && {
        handoffInputFilter: (data) => this.at('run.handoffInputFilter', [data], () => ({})),
      }),
      ...(this.has('handoffHistoryMapper') && {
        handoffHistoryMapper: (list) =>
          this.at('handoffHistoryMapper', [list], () => [
            { role: 'user', content: `So far: ${[...idsIn(list)].join(' ')}` },
          ]),
      }),
      ...(this.has('sessionInputCallback') && {
        sessionInputCallback: (history, fresh) =>
          this.at('sessionInputCallback', [history, fresh], () => [...history, ...fresh]),
      }),
      ...(this.has('onApproval') && {
        onApproval: (_ctx, item) => this.at('onApproval', [item], () => undefined),
      }),
      ...(this.has('toolErrorFormatter') && {
        toolErrorFormatter: (args) => this.at('toolErrorFormatter', [args], () => undefined),
      }),
      ...(this.has('errorHandlers.maxTurns') && {
        errorHandlers: { maxTurns: (args) => this.at('errorHandlers.maxTurns', [args], () => undefined) },
      }),
      ...(this.has('outputGuardrailBlockedMessage') && {
        outputGuardrailBlockedMessage: (args) => this.at('outputGuardrailBlockedMessage', [args], () => undefined),
      }),
    };
  }
}

const runHooks = [
  'onRunStart',
  'onRunEnd',
  'onAgentStart',
  'onAgentEnd',
  'onHandoff',
  'onToolStart',
  'onToolEnd',
  'onLlmStart',
  'onLlmEnd',
  'onTurnEnd',
  'onError',
] as const;
const agentHooks = ['onStart', 'onEnd', 'onHandoff', 'onToolStart', 'onToolEnd', 'onLlmStart', 'onLlmEnd'] as const;

const idsIn = (list: unknown): Set<string> =>
  new Set(JSON.stringify(list).match(/(for )?k?c\d+_\d+(x\d+_\d+)?/g) ?? []);
