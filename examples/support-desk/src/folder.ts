import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the desk keeps between two visits, as files of one folder. */
export class DeskFolder {
  readonly path: string;

  constructor(path: string) {
    mkdirSync(path, { recursive: true });
    this.path = path;
  }

  get orders(): string {
    return join(this.path, 'orders.db');
  }

  get conversations(): string {
    return join(this.path, 'conversations.db');
  }

  /** A run that is not over: it waits for a decision, or it failed on the way. */
  get unfinishedRun(): string {
    return join(this.path, 'unfinished-run.json');
  }

  /** The conversation to go on with. */
  get conversationId(): string {
    return read(join(this.path, 'conversation-id'))?.trim() || this.newConversation();
  }

  newConversation(): string {
    const id = `desk-${randomUUID()}`;
    replace(join(this.path, 'conversation-id'), `${id}\n`);
    return id;
  }

  readRun(): string | undefined {
    return read(this.unfinishedRun);
  }

  keepRun(state: string): void {
    replace(this.unfinishedRun, state);
  }

  dropRun(): void {
    rmSync(this.unfinishedRun, { force: true });
  }

  /** Moves a run that cannot be read out of the way, and says where it is now. */
  setRunAside(): string {
    const aside = `${this.unfinishedRun}.unreadable-${Date.now()}`;
    renameSync(this.unfinishedRun, aside);
    return aside;
  }
}

function read(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/** A process that dies while it writes leaves the old content or the new one, nothing between. */
function replace(path: string, content: string): void {
  const next = `${path}.${process.pid}.next`;
  writeFileSync(next, content, { flush: true });
  renameSync(next, path);
}
