import { RunState, setTraceProcessors } from '@agents/core';
import { ConsoleTraceProcessor } from '@agents/core/tracing';
import { SQLiteSession } from '@agents/session-sqlite';
import type { Agent } from '@agents/core';
import { supportAgent } from './agent.ts';
import { DeskFileError, explain } from './explain.ts';
import { DeskFolder } from './folder.ts';
import { Orders } from './orders.ts';
import type { ModelChoice } from './model.ts';
import { dim } from './text.ts';

/** Everything that a run of the support desk needs, over the files of one folder. */
export interface Desk extends AsyncDisposable {
  readonly folder: DeskFolder;
  readonly orders: Orders;
  readonly agent: Agent;
  readonly model: ModelChoice;
  readonly session: SQLiteSession;
}

/** @throws DeskFileError */
export async function openDesk(path: string, model: ModelChoice): Promise<Desk> {
  const folder = await usable(path, () => new DeskFolder(path));
  const orders = await usable(folder.orders, () => new Orders(folder.orders));
  const session = new SQLiteSession(folder.conversationId, folder.conversations);
  await usable(folder.conversations, () => session.getItems(1));
  // Each run ends with its trace as a tree, set apart from the conversation.
  setTraceProcessors([new ConsoleTraceProcessor({ log: (tree) => console.log(dim(`\n${tree}`)) })]);
  return {
    folder,
    orders,
    agent: supportAgent(orders),
    model,
    session,
    async [Symbol.asyncDispose]() {
      orders.close();
      await session.close();
    },
  };
}

/** The run that is not over, from its file; `undefined` when there is none. @throws AgentsError when it cannot be read */
export async function unfinishedRun({ folder, agent }: Desk): Promise<RunState<unknown, string> | undefined> {
  const text = folder.readRun();
  return text === undefined ? undefined : RunState.fromString(agent, text);
}

async function usable<T>(path: string, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw new DeskFileError(`${path}: ${explain(error)}`, { cause: error });
  }
}
