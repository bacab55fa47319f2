import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { RunState } from '@agents/core';
import type { AgentInputItem } from '@agents/core';
import { SQLiteSession } from '@agents/session-sqlite';
import { supportAgent } from '../../src/agent.ts';
import { DeskFolder } from '../../src/folder.ts';
import { Orders } from '../../src/orders.ts';
import { visit } from './visit.ts';
import type { Ended, Kill } from './visit.ts';

/** What the person says, one after the other; refunds are approved, and small enough to be possible twice. */
const messages = [
  'Where is order 1041?',
  'Refund 20 euros of order 1042',
  'Where is order 1042?',
  'Refund order 1043, amount 5',
] as const;
const amounts = { 1042: 20, 1043: 5 } as const;
const refunded = ['1042', '1043'] as const;

export interface Tally {
  kills: number;
  /** Kills after which a run waited in its file, those after which a refund had been paid and its run was not over. */
  paused: number;
  paidUnfinished: number;
  visits: number;
}

/** Numbers that look random, the same for one seed. */
function numbers(seed: number): (below: number) => number {
  let state = Math.imul(seed, 2654435761) ^ 0x5bd1e995;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

/** One conversation, killed `kills` times on its way and then brought to its end. @throws Error naming the seed */
export async function trial(seed: number, kills: number, tally: Tally): Promise<void> {
  const path = mkdtempSync(join(tmpdir(), 'support-desk-crash-'));
  const conversation = new Conversation(path, numbers(seed), tally);
  try {
    await conversation.run(kills);
  } catch (error) {
    throw new Error(`Seed ${seed}: ${(error as Error).message}\n${conversation.told}`, { cause: error });
  }
  rmSync(path, { recursive: true, force: true });
}

/** What the person knows of the conversation, which is what must never be lost. */
class Conversation {
  told = '';
  readonly #folder: DeskFolder;
  readonly #random: (below: number) => number;
  readonly #tally: Tally;
  /** Messages that were answered. */
  #answered = 0;
  /** The message at the desk, until the next one is asked for. */
  #said: string | undefined;
  /** The history when the last answer was there. */
  #history: readonly AgentInputItem[] = [];
  /** The desk asked for an approval, and the request is not over. */
  #asked = false;

  constructor(path: string, random: (below: number) => number, tally: Tally) {
    this.#folder = new DeskFolder(path);
    this.#random = random;
    this.#tally = tally;
  }

  async run(kills: number): Promise<void> {
    let left = kills;
    for (let round = 0; this.#answered < messages.length; round += 1) {
      if (round > 10 * kills + 10) throw new Error('The conversation does not end.');
      const ended = await this.#visit(left > 0 ? this.#kill() : undefined);
      if (!ended.killed && ended.code !== 0) throw new Error(`The desk ended with ${ended.code}.`);
      if (ended.killed) left -= 1;
      await this.#check(ended);
    }
    this.#checkEnd();
  }

  /** At a point three times of four, else at a moment. */
  #kill(): Kill {
    if (this.#random(4) > 0) return { point: 1 + this.#random(160) };
    return { line: 1 + this.#random(3), afterMs: this.#random(60) };
  }

  async #visit(kill: Kill): Promise<Ended> {
    this.#tally.visits += 1;
    const ended = await visit(this.#folder.path, kill, (question) => {
      if (question === 'approval') {
        this.#asked = true;
        return 'y';
      }
      if (question === 'again') return '';
      this.#done();
      return (this.#said = messages[this.#answered]);
    });
    this.told += `\n--- ${JSON.stringify(kill)} ${ended.killed ? 'killed' : 'left'}\n${ended.text}`;
    return ended;
  }

  /** The desk is ready for the next message: the last one is answered. */
  #done(): void {
    if (this.#said !== undefined && this.#isAnswered(this.#said)) this.#answered += 1;
    this.#said = undefined;
    this.#asked = false;
    this.#history = this.#items();
  }

  /** The person reads in the conversation whether they were heard; who was not says it again. */
  #isAnswered(message: string): boolean {
    const items = this.#items() as readonly { role?: string; content?: unknown }[];
    const at = items.findLastIndex((item) => item.role === 'user' && item.content === message);
    return at !== -1 && items.slice(at).some((item) => item.role === 'assistant');
  }

  #items(): AgentInputItem[] {
    using db = new DatabaseSync(this.#folder.conversations, { timeout: 2000 });
    const rows = db
      .prepare('SELECT message_data AS text FROM agent_messages WHERE session_id = ? ORDER BY id')
      .all(this.#folder.conversationId);
    return rows.map(({ text }) => JSON.parse(String(text)) as AgentInputItem);
  }

  async #check({ killed, text }: Ended): Promise<void> {
    const { orders: ordersPath, conversations } = this.#folder;
    for (const path of [ordersPath, conversations]) {
      using db = new DatabaseSync(path, { timeout: 2000 });
      const { integrity_check: state } = db.prepare('PRAGMA integrity_check').get() as { integrity_check: string };
      if (state !== 'ok') throw new Error(`${path}: ${state}`);
    }
    const orders = new Orders(ordersPath);
    const agent = supportAgent(orders);
    const run = this.#folder.readRun();
    const state = run === undefined ? undefined : await RunState.fromString(agent, run);
    const paid = refunded.filter((id) => orders.countRefunds(id) > 0);
    const twice = refunded.find((id) => orders.countRefunds(id) > 1);
    orders.close();
    if (twice !== undefined) throw new Error(`Order ${twice} was refunded more than once.`);
    for (const id of refunded)
      if (new RegExp(`← .*"orderId":"${id}".*"refunded":${amounts[id]}}`).test(text) && !paid.includes(id))
        throw new Error(`The refund of order ${id} was told and is not there.`);

    const session = new SQLiteSession(this.#folder.conversationId, conversations);
    const items = await session.getItems();
    await session.close();
    if (!isDeepStrictEqual(items.slice(0, this.#history.length), this.#history))
      throw new Error('The history that was there at the last answer is another one now.');
    const calls = items.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : []));
    const outputs = items.flatMap((item) => (item.type === 'function_call_output' ? [item.call_id ?? ''] : []));
    for (const list of [calls, outputs])
      if (new Set(list).size !== list.length) throw new Error(`Twice in the history: ${list.join(', ')}`);
    if (!outputs.every((id) => calls.includes(id))) throw new Error('An output has no call.');
    const over = this.#said !== undefined && this.#isAnswered(this.#said);
    if (this.#asked && !over && state === undefined) throw new Error('A run that waited for an approval is lost.');

    if (!killed) return;
    this.#tally.kills += 1;
    if (state?.status === 'interrupted') this.#tally.paused += 1;
    if (this.#said !== undefined && !over && paid.some((id) => this.#said?.includes(id) === true))
      this.#tally.paidUnfinished += 1;
  }

  #checkEnd(): void {
    const orders = new Orders(this.#folder.orders);
    const wrong = refunded.filter((id) => orders.countRefunds(id) !== 1 || orders.find(id).refunded !== amounts[id]);
    orders.close();
    if (wrong.length > 0) throw new Error(`Not refunded once: ${wrong.join(', ')}.`);
    if (this.#folder.readRun() !== undefined) throw new Error('A run is left in its file.');
    const read = (name: string): string => readFileSync(join(this.#folder.path, name), 'utf8');
    if (read('conversation-id').trim() !== this.#folder.conversationId) throw new Error('Another conversation.');
  }
}
