import { checkItemList } from '../items/check.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import type { VersionedSession } from './contract.ts';

/**
 * Notices other writers (`sessionConcurrency: 'detect'`, SESS-361): each append of a run names the version that the one before
 * it left, the first one that of the history that was read. What a resumed segment finds is where its chain begins.
 */
export class VersionChain {
  readonly #session: VersionedSession;
  readonly #context: RunContext;
  #version: string | undefined;

  constructor(session: VersionedSession, context: RunContext) {
    this.#session = session;
    this.#context = context;
  }

  async read(limit: number | undefined): Promise<AgentInputItem[]> {
    const { items, version } = await this.#session.readHistory(limit, this.#context);
    checkItemList(items, "The session's readHistory() resolved to");
    this.#version = version;
    return items;
  }

  /** @throws SessionVersionConflictError; nothing was written */
  async append(items: readonly AgentInputItem[], operationId: string): Promise<void> {
    if (this.#version === undefined) await this.read(0);
    const version = this.#version ?? '';
    this.#version = await this.#session.appendIfVersion(version, items, { operationId }, this.#context);
  }

  /** After a change without a version, or one that may have been made long ago. */
  restart(): void {
    this.#version = undefined;
  }
}
