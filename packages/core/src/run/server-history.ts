import type { ToolTable } from './turn/classify.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import type { Model, ModelRequest, ModelResponse } from '../models/model.ts';
import type { ProcessedResponse, ServerManaged, StateRecord } from '../state/record.ts';
import type { RunEnv } from './env.ts';
import type { Received } from './turn/receive.ts';
import { UserError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import { dedupeInput } from '../items/convert.ts';
import { checkedOutput } from '../models/answer.ts';
import { itemsInOrder } from '../models/collect.ts';
import { resolveModel } from '../models/resolve.ts';
import { outputGuardrails } from './guarded.ts';
import { leftOut, unknownItems } from './server-delta.ts';
import type { Pending } from './server-delta.ts';
import { checkGuardrailsOf } from './server-managed.ts';
import { ModelInput } from './turn/model-input.ts';
import { collectTools } from './turn/prepare.ts';
import { llmEnd, receive } from './turn/receive.ts';

/** Joins a segment and the history that the provider keeps. @throws UserError about output guardrails, of a resumed turn (RUN-915) */
export async function openServerHistory(record: StateRecord, env: RunEnv): Promise<void> {
  const { currentAgent: agent, step } = record;
  const server = new ServerHistory(record.serverManaged?.conversationId);
  // A turn that waits may end the run, and no model is asked for in it.
  if (step.type === 'interruption' && outputGuardrails(agent, env)) {
    const { model: runModel, modelProvider: provider } = env.options;
    server.checkModel(await env.control.race(resolveModel({ runModel, provider, agent })), agent, env);
  }
  env.modelInput = env.server = server;
}

type ItemDone = Extract<ResponseStreamEvent, { type: 'response.output_item.done' }>;

/**
 * The input of a run whose history the provider keeps: of each turn what the provider does not know (RUN-1502). All of it
 * follows from the record: responses are known, and so is what was sent before the last of them; a call that failed, or a
 * resume, sends the same once more.
 */
export class ServerHistory extends ModelInput {
  readonly conversationId: string | undefined;
  #pending: readonly Pending[] = [];
  #undelivered: ServerManaged['undelivered'];
  /** The response that the events of this call tell of; kept at once, whatever becomes of the stream. */
  #accepted: ModelResponse | undefined;
  #done: ItemDone[] = [];

  constructor(conversationId: string | undefined) {
    super();
    this.conversationId = conversationId;
  }

  override next(record: StateRecord): AgentInputItem[] {
    const pending = unknownItems(record);
    const list = dedupeInput(pending.map(({ item }) => item)).slice();
    const sent = new Set(list);
    this.#pending = pending.filter(({ item }) => sent.has(item));
    this.#undelivered = undefined;
    this.#accepted = undefined;
    this.#done = [];
    return list;
  }

  override rewritten(): void {}

  /** What the request goes on from. */
  ids({ serverManaged }: StateRecord): Pick<ModelRequest, 'conversationId' | 'previousResponseId'> {
    const { conversationId, previousResponseId } = serverManaged ?? {};
    return conversationId === undefined ? { previousResponseId } : { conversationId };
  }

  /** @throws UserError about output guardrails of the agent whose turn it is (RUN-915) */
  checkModel(model: Model, agent: AnyAgent, env: RunEnv): void {
    if (outputGuardrails(agent, env)) checkGuardrailsOf(model, agent);
  }

  /** What the filter returned is sent; what it left out stays owed. @throws UserError when that cannot be told apart */
  sending(list: readonly AgentInputItem[]): void {
    const left = leftOut(this.#pending, list);
    const places = (of: Pending['list']): number[] => left.flatMap(({ list, index }) => (list === of ? [index] : []));
    this.#undelivered = left.length === 0 ? undefined : { input: places('input'), items: places('items') };
  }

  /** The provider has the response from its terminal event on, also when the run is cut before the stream has ended. */
  seen(event: ResponseStreamEvent, record: StateRecord, env: RunEnv): void {
    if (event.type === 'response.output_item.done') this.#done.push(event);
    if (event.type !== 'response.completed' || this.#accepted !== undefined) return;
    const { id, output, usage } = event.response ?? {};
    let items: readonly ResponseOutputItem[];
    try {
      items = checkedOutput(output, () => itemsInOrder(this.#done));
    } catch {
      // The call fails with it.
      return;
    }
    const response = { output: items, usage: toUsage(usage as never), ...(id ? { responseId: id } : undefined) };
    this.#accept(response, record, env);
    this.#accepted = response;
  }

  /** From here on the run goes on from the response, and never asks for it again (RUN-1509, STATE-190). */
  accept(response: ModelResponse, record: StateRecord, env: RunEnv): void {
    if (this.#accepted === undefined) this.#accept(response, record, env);
    else record.modelResponses[record.modelResponses.length - 1] = response;
  }

  /** What a call cost whose stream was cut behind its response. */
  get acceptedUsage(): ModelResponse['usage'] | undefined {
    return this.#accepted?.usage;
  }

  #accept(response: ModelResponse, record: StateRecord, env: RunEnv): void {
    const { conversationId, previousResponseId, auto = false } = record.serverManaged ?? {};
    record.modelResponses.push(response);
    record.processed = undefined;
    record.step = { type: 'interruption', interruptions: [], responseAccepted: true, llmEndHooksStarted: false };
    record.serverManaged = {
      conversationId,
      previousResponseId: conversationId === undefined ? (response.responseId ?? previousResponseId) : undefined,
      auto,
      undelivered: this.#undelivered,
    };
    env.inputCheck?.localWork();
  }

  /** The response is understood, and its items belong to the run. */
  understood(processed: ProcessedResponse, record: StateRecord): void {
    record.generatedItems.push(...processed.newItems);
    record.processed = processed;
  }

  /** Whether `onLlmEnd` is due; asked right before, and once. */
  llmEndDue(record: StateRecord): boolean {
    const { step } = record;
    if (step.type !== 'interruption') return true;
    if (step.llmEndHooksStarted) return false;
    record.step = { ...step, llmEndHooksStarted: true };
    return true;
  }

  /**
   * A response that was accepted and not understood: now, with the tools of today, and with its hooks where they have not
   * run. `undefined`: the turn goes on as any interrupted one.
   * @throws UserError `resume_response_unprocessable`
   */
  async again(
    record: StateRecord,
    env: RunEnv,
  ): Promise<{ response: ModelResponse; received: Received; table: ToolTable } | undefined> {
    const { step, processed, currentAgent: agent } = record;
    const response = record.modelResponses.at(-1);
    if (step.type !== 'interruption' || !step.responseAccepted || response === undefined) return undefined;
    if (processed !== undefined) {
      await llmEnd(response, record, env);
      return undefined;
    }
    const { table } = await collectTools(record, env);
    try {
      return { response, received: await receive(response, { agent, table }, record, env), table };
    } catch (error) {
      if (record.processed !== undefined) throw error;
      throw new UserError(
        'The provider has accepted a model response that could not be processed, so that the run cannot go on from it. Start a new run.',
        { code: 'resume_response_unprocessable', cause: error },
      );
    }
  }
}
