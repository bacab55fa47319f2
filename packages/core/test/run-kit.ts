import type { AgentInputItem } from '../src/items/items.ts';
import type { ResponseStreamEvent } from '../src/items/wire.ts';
import type { Session } from '../src/sessions/contract.ts';
import type { RunStreamEvent } from '../src/run/events.ts';
import type { RunResult, RunResultStreaming } from '../src/run/result.ts';
import * as z from 'zod';
import { Agent } from '../src/agent/agent.ts';
import { tool } from '../src/agent/tool.ts';
import type { FunctionTool } from '../src/agent/tool.ts';
import { configureLogging } from '../src/base/logger.ts';
import type { LoggingOptions, LogRecord } from '../src/base/logger.ts';
import { ScriptedModel } from '../src/testing/scripted-model.ts';
import type { ModelStep } from '../src/testing/script.ts';

// What runs load with their first need of it: a test that counts turns of the event loop has to count those of its run alone.
import '../src/run/extended-events.ts';
import '../src/run/input-check.ts';
import '../src/run/loop.ts';
import '../src/run/nested.ts';
import '../src/run/open-session.ts';
import '../src/run/server-history.ts';
import '../src/run/turn/accept.ts';
import '../src/run/turn/handoffs.ts';
import '../src/run/turn/tool-guardrails.ts';
import '../src/sessions/held.ts';

/** What the tests of runs have in common. */

export const user = (content: string): AgentInputItem => ({ role: 'user', content });

/** A tool that writes each of its calls into `effects`. */
export function effectTool(
  name: string,
  effects: string[],
  options: { needsApproval?: boolean; result?: (id: string) => unknown; failureErrorFunction?: null } = {},
): FunctionTool<unknown> {
  return tool({
    name,
    parameters: z.object({ id: z.string().default('-') }),
    needsApproval: options.needsApproval ?? false,
    failureErrorFunction: options.failureErrorFunction,
    execute: ({ id }) => {
      effects.push(`${name} ${id}`);
      return options.result ? options.result(id) : `${name} ok`;
    },
  });
}

/** An agent with the free tool `t` and the gated tool `g`. */
export function freeAndGated(model: ScriptedModel): Agent {
  const tools = [effectTool('t', []), effectTool('g', [], { needsApproval: true })];
  return new Agent({ name: 'A', model, tools });
}

/** The same, and the model that answers with these steps. */
export function scriptedDesk(...steps: readonly ModelStep[]): { agent: Agent; model: ScriptedModel } {
  const model = new ScriptedModel(steps);
  return { agent: freeAndGated(model), model };
}

/** A step of a script that answers with these very items, of any kind. Calls need ids of their own. */
export function exactly(...output: readonly object[]): { readonly events: readonly ResponseStreamEvent[] } {
  const response = { id: 'resp', object: 'response', status: 'completed', output, usage: null };
  return {
    events: [{ type: 'response.completed', sequence_number: 0, response } as unknown as ResponseStreamEvent],
  };
}

/** `u` user message, `a` assistant message without type, `m` message item, `fc`/`fco` call and output, else the type. */
export function kindsOf(items: readonly object[]): string {
  return items
    .map((item) => {
      const { type, role } = item as { type?: string; role?: string };
      if (type === 'function_call') return 'fc';
      if (type === 'function_call_output') return 'fco';
      if (role === 'user') return 'u';
      return type === 'message' ? 'm' : (type ?? 'a');
    })
    .join(' ');
}

/** Names of events in order; raw events of one response in a row are one `R`, or their types when asked for. */
export function namesOf(events: readonly RunStreamEvent[], options: { raw?: boolean } = {}): string[] {
  const names: string[] = [];
  for (const event of events) {
    if (event.type === 'run_item_stream_event') names.push(event.name);
    else if (event.type === 'agent_updated_stream_event') names.push(`agent ${event.newAgent.name}`);
    else if (event.type === 'run_extended_event') names.push(event.name);
    else if (options.raw) names.push(event.data.type);
    else if (event.data.type === 'response.completed') names.push('R');
  }
  return names;
}

export async function readAll(stream: AsyncIterable<RunStreamEvent>): Promise<RunStreamEvent[]> {
  const events: RunStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** What a promise rejected with; one that resolves fails the test. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    () => ({ resolved: true }) as const,
    (error: unknown) => ({ resolved: false, error }) as const,
  );
  if (outcome.resolved) throw new Error('The promise was resolved.');
  return outcome.error;
}

/** What `work` throws at once; what throws nothing fails the test. */
export function thrown(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was thrown.');
}

/** Lines of the log from here on, as loud as the options say; nothing reaches the console. */
export function logged(options: LoggingOptions = {}): LogRecord[] {
  const records: LogRecord[] = [];
  configureLogging({ sink: (record) => void records.push(record), ...options });
  return records;
}

/** Lets everything run that is ready to. */
export async function idle(turns = 3): Promise<void> {
  for (let i = 0; i < turns; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Rejections that nobody handled while `work` went on and a moment later. */
export async function unhandledDuring(work: () => Promise<void> | void): Promise<unknown[]> {
  const seen: unknown[] = [];
  const listen = (reason: unknown): void => void seen.push(reason);
  process.on('unhandledRejection', listen);
  try {
    await work();
    await idle(5);
  } finally {
    process.off('unhandledRejection', listen);
  }
  return seen;
}

/** A result of either form, after a stream was read to its end. */
export async function resultOf<C, O>(
  run: Promise<RunResult<C, O>> | RunResultStreaming<C, O>,
): Promise<RunResult<C, O>> {
  if (run instanceof Promise) return await run;
  for await (const _ of run);
  return await run.completed;
}

/** When an append fails: before anything is stored, after everything is, or in between. */
export type AppendFault = 'before' | 'after' | 'half';

/** A session of the four methods and no more, in memory; its calls are written down and its appends fail when told to. */
export class PlainSession implements Session {
  readonly sessionId: string | undefined;
  /** `get`, `get(n)`, `add[kinds]`. */
  readonly log: string[] = [];
  readonly items: AgentInputItem[];
  /** Faults of the next appends, in order; `undefined` for one that works. */
  readonly faults: (AppendFault | undefined)[] = [];
  readonly error: Error = new Error('the store is down');
  /** Awaited by every append before it does anything. */
  gate: Promise<void> | undefined;
  failReads = false;

  constructor(sessionId: string | undefined = 's', items: readonly AgentInputItem[] = []) {
    this.sessionId = sessionId;
    this.items = structuredClone([...items]);
  }

  get kinds(): string {
    return kindsOf(this.items);
  }

  getItems = async (limit?: number): Promise<AgentInputItem[]> => {
    this.log.push(limit === undefined ? 'get' : `get(${limit})`);
    if (this.failReads) throw this.error;
    const items = limit === undefined ? this.items : limit <= 0 ? [] : this.items.slice(-limit);
    return structuredClone(items);
  };

  addItems = async (items: readonly AgentInputItem[]): Promise<void> => {
    const batch = structuredClone([...items]);
    this.log.push(`add[${kindsOf(batch)}]`);
    // Later than anything that is merely awaited: whoever does not wait for a write is seen.
    await idle(2);
    await this.gate;
    const fault = this.faults.shift();
    if (fault === 'before') throw this.error;
    this.items.push(...(fault === 'half' ? batch.slice(0, 1) : batch));
    if (fault !== undefined) throw this.error;
  };

  popItem = async (): Promise<AgentInputItem | undefined> => {
    this.log.push('pop');
    return this.items.pop();
  };

  clearSession = async (): Promise<void> => {
    this.log.push('clear');
    this.items.length = 0;
  };
}
