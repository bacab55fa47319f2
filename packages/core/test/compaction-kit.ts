import type { LogRecord } from '../src/base/logger.ts';
import type { AgentInputItem } from '../src/items/items.ts';
import { OpenAICompactionSession } from '../src/openai/compaction-session.ts';
import type { OpenAICompactionSessionOptions } from '../src/openai/compaction-session.ts';
import type { Session } from '../src/sessions/contract.ts';
import { MemorySession } from '../src/sessions/memory.ts';
import { FakeOpenAI } from '../src/testing/fake-openai.ts';
import { logged as loggedFromNow, user } from './run-kit.ts';

/** What the tests of sessions that compact have in common. */

export const item = (value: object): AgentInputItem => value as AgentInputItem;
export const said = (text: string): AgentInputItem => item({ type: 'message', role: 'assistant', content: text });
/** A user message and `count` answers. */
export const talk = (count: number, name = 'a'): AgentInputItem[] => [
  user(name),
  ...Array.from({ length: count }, (_, n) => said(`${name}${n}`)),
];
export const summary: AgentInputItem = item({ type: 'compaction', id: 'cmp', encrypted_content: 'short' });

/** What is logged during the work. */
export async function logged(work: () => Promise<unknown> | void): Promise<readonly LogRecord[]> {
  const records = loggedFromNow();
  await work();
  return records;
}

interface Wrapped<S> {
  fake: FakeOpenAI;
  client: Awaited<ReturnType<FakeOpenAI['client']>>;
  session: S;
  compacting: OpenAICompactionSession;
  /** What was asked of the service. */
  asked: () => Record<string, unknown>[];
  /** What the next compaction gives, perhaps after something else happened. */
  gives: (output: readonly object[], meanwhile?: () => Promise<unknown>) => void;
}

export async function wrapped<S extends Session>(
  session: S,
  options: OpenAICompactionSessionOptions = {},
): Promise<Wrapped<S>> {
  const fake = new FakeOpenAI();
  const client = await fake.client({ maxRetries: 0 });
  const compacting = new OpenAICompactionSession(session, { client, ...options });
  const asked = (): Record<string, unknown>[] =>
    fake.requests.filter(({ path }) => path.endsWith('/compact')).map(({ body }) => body as Record<string, unknown>);
  const gives = (output: readonly object[], meanwhile?: () => Promise<unknown>): void => {
    const body = { id: 'resp_c', object: 'response.compaction', created_at: 1, output };
    if (meanwhile === undefined) fake.inject({ kind: 'status', status: 200, body, on: { path: /compact/u } });
    else
      Object.assign(client.responses, {
        compact: async () => {
          await meanwhile();
          return body;
        },
      });
  };
  return { fake, client, session, compacting, asked, gives };
}

/** Four functions and nothing else, over memory; counts and breaks its calls. */
export class FourFunctions implements Session {
  readonly sessionId: string = 'plain';
  readonly memory: MemorySession = new MemorySession();
  failing: string[] = [];
  readonly #fail = (name: string): void => {
    const at = this.failing.indexOf(name);
    if (at === -1) return;
    this.failing.splice(at, 1);
    throw new Error(`${name} failed`);
  };
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    return await this.memory.getItems(limit);
  }
  async addItems(items: readonly AgentInputItem[]): Promise<void> {
    this.#fail('addItems');
    await this.memory.addItems(items);
  }
  async popItem(): Promise<AgentInputItem | undefined> {
    this.#fail('popItem');
    return await this.memory.popItem();
  }
  async clearSession(): Promise<void> {
    this.#fail('clearSession');
    await this.memory.clearSession();
  }
}
