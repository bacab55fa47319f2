import * as z from 'zod';
import { Agent, defineModel, tool, toUsage } from '../../src/index.ts';
import type { FunctionTool, Model, ToolContext } from '../../src/index.ts';
import { reasoning, refusal, text, toolCall } from '../../src/testing/index.ts';
import { idle } from '../run-kit.ts';
import { Law } from './law.ts';
import { policies, toolName } from './script.ts';
import type { Call, Policy, Random, Script } from './script.ts';

/** What the world throws on purpose. */
export class Planned extends Error {}

/** What happens to the model once: it is down, it breaks off in the middle of its answer, it refuses. */
export type ModelFault = 'down' | 'cut' | 'refuses';

/** Where a run is, as its world sees it: a model, tools, and the points at which something may be planned to happen. */
export class World {
  readonly script: Script;
  readonly law: Law;
  readonly agent: Agent;
  readonly asked: number[] = [];
  modelFault: ModelFault | undefined;
  /** Called at each point with its name; what it throws is thrown there. */
  onPoint: (name: string) => void = () => undefined;
  readonly #calls: ReadonlyMap<string, Call>;
  readonly #random: Random;
  #late: (() => void)[] = [];

  constructor(script: Script, random: Random) {
    this.script = script;
    this.law = new Law(script);
    this.#random = random;
    this.#calls = new Map(script.flat().map((call) => [call.id, call]));
    this.agent = new Agent({
      name: 'A',
      model: this.#model(),
      tools: policies.flatMap((policy) => [this.#tool(policy, false), this.#tool(policy, true)]),
    });
  }

  readonly point = (name: string): void => this.onPoint(name);

  /** The segment is over: bodies that nobody waits for any more come to their end. */
  async releaseLate(): Promise<void> {
    for (const release of this.#late.splice(0)) release();
    await idle(2);
  }

  /** Answers with the first turn whose calls it has not seen, so that it may be asked again. */
  #model(): Model {
    const answer = async (input: readonly object[]) => {
      const seen = new Set(input.flatMap((item) => ('call_id' in item ? [item.call_id] : [])));
      const turn = this.script.findIndex((calls) => !seen.has(calls[0]?.id ?? ''));
      this.asked.push(turn);
      this.point('model');
      await idle(this.#random(3));
      const fault = this.modelFault;
      this.modelFault = undefined;
      if (fault === 'down' || fault === 'cut') throw new Planned('the model is down');
      return {
        output: outputOf(this.script[turn], turn, fault),
        usage: toUsage({ requests: 1 }),
        responseId: `resp_${turn}`,
      };
    };
    const whole = defineModel({ getResponse: ({ input }) => answer(input) });
    const cut = (): boolean => this.modelFault === 'cut';
    return {
      getResponse: (request) => whole.getResponse(request),
      async *streamResponse(request) {
        const breaks = cut();
        if (!breaks) return yield* whole.streamResponse(request);
        const events = defineModel({
          getResponse: async () => ({ output: [text('half of an ans')], usage: toUsage({ requests: 1 }) }),
        }).streamResponse(request);
        for (let left = 3; left > 0; left -= 1) {
          const next = await events.next();
          if (!next.done) yield next.value;
        }
        await whole.getResponse(request);
        throw new Error('A cut answer has no end.');
      },
    };
  }

  #tool(policy: Policy, gated: boolean): FunctionTool {
    const limited = policy === 'limit' || policy === 'limit_throw';
    return tool({
      name: toolName(policy, gated),
      parameters: z.object({ id: z.string() }),
      needsApproval: gated,
      ...(limited && { timeoutMs: 3, timeoutBehavior: policy === 'limit' ? 'error_as_result' : 'raise_exception' }),
      failureErrorFunction: policy === 'throw' ? null : (_ctx, error) => `failed: ${error.message}`,
      execute: ({ id }, ctx) => this.#body(id, ctx),
    });
  }

  #body(id: string, ctx: ToolContext): string | Promise<string> {
    const attempt = this.law.start(id);
    this.point('body');
    const { body } = this.#calls.get(id) ?? { body: 'quick' };
    const ok = `${id} ok`;
    switch (body) {
      case 'quick':
        return ok;
      case 'slow':
        return idle(1 + this.#random(4)).then(() => ok);
      case 'heeds':
        return heeds(ctx.signal, 1 + this.#random(4)).then(() => ok);
      case 'fails':
        if (attempt > 1) return ok;
        if (this.#random(2) === 0) throw new Planned(id);
        return idle(this.#random(3)).then(() => Promise.reject(new Planned(id)));
      case 'hangs':
        if (attempt > 1) return ok;
        return new Promise((_, reject) =>
          ctx.signal.addEventListener('abort', () => reject(new Planned('told to stop'))),
        );
      case 'late':
        if (attempt > 1) return ok;
        return new Promise((resolve) => this.#late.push(() => resolve(ok)));
      default:
        return body satisfies never;
    }
  }
}

async function heeds(signal: AbortSignal, turns: number): Promise<void> {
  for (let left = turns; left > 0; left -= 1) {
    await idle(1);
    signal.throwIfAborted();
  }
}

function outputOf(calls: readonly Call[] | undefined, turn: number, fault: ModelFault | undefined) {
  if (fault === 'refuses') return [{ ...refusal('no'), id: 'refused' }];
  if (calls === undefined) return [{ ...text('done'), id: 'msg' }];
  return [
    { ...reasoning('hm'), id: `r${turn}` },
    ...calls.map(({ id, tool: name, malformed }) =>
      toolCall(name, malformed ? `{"id": ${id}` : { id }, { callId: id }),
    ),
  ];
}
