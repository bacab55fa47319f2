import { SessionError, sessionExists } from '@agents/core/session';
import type { StagedHistory } from '@agents/core/session';

import { AnswerLost } from './connection.ts';
import type { Answer } from './connection.ts';
import { wrongType } from './history.ts';
import type { RedisHistorySetup } from './history.ts';
import { besideKey } from './keys.ts';
import { entryHead, newOperationId } from './operations.ts';
import { readTail } from './read.ts';
import { publishScript, stageScript } from './scripts.ts';

/** What an import that was left lying is kept for: the next part begins it anew. */
export const BESIDE_MS: number = 60 * 60 * 1000;

/** A history on its way in: a list beside the session, in its slot, that takes the place of its list in one step. */
export class RedisStage implements StagedHistory {
  readonly #sessionId: string;
  readonly #setup: RedisHistorySetup;
  readonly #key: string;
  #count = 0;

  constructor(sessionId: string, setup: RedisHistorySetup) {
    this.#sessionId = sessionId;
    this.#setup = setup;
    this.#key = besideKey(setup.keys);
  }

  async append(texts: readonly string[]): Promise<void> {
    if (texts.length === 0) return;
    const args = [String(this.#count), String(BESIDE_MS), ...texts];
    let what: string | undefined;
    try {
      [what] = await this.#setup.connection.use(async (client) =>
        textsOf(await stageScript.run(client, [this.#key], args)),
      );
    } catch (error) {
      // Whether it came is of no interest: nobody sees it.
      throw error instanceof AnswerLost ? (error.cause ?? error) : error;
    }
    if (what === 'gone') throw this.#gone();
    this.#count += texts.length;
  }

  async publish(how: 'create' | 'replace' | 'append'): Promise<void> {
    const { connection, keys, ttlMs, written } = this.#setup;
    const operationId = newOperationId();
    for (;;) {
      const version = how === 'replace' ? (await connection.use((client) => readTail(client, keys, 0))).version : '';
      const names = [keys.session, keys.messages, keys.counter, this.#key];
      const head = [entryHead(operationId), this.#sessionId, String(ttlMs ?? ''), version];
      const args = [...head, how, String(this.#count)];
      const answer = await connection.use((client) => publishScript.run(client, names, args));
      const [what, expected = '', actual = ''] = textsOf(answer);
      if (what === 'done' || what === 'known') break;
      // What was sent before may have done it.
      if (answer.sentAgain) throw new AnswerLost();
      if (what === 'exists') throw sessionExists(this.#sessionId);
      if (what === 'gone') throw this.#gone();
      if (what === 'type') throw wrongType({ what, expected, actual }, this.#sessionId);
    }
    await written?.(this.#sessionId);
  }

  async discard(): Promise<void> {
    await this.#setup.connection.use((client) => client.del(this.#key));
  }

  #gone(): SessionError {
    return new SessionError('What was on its way into the session is gone; nothing was stored. Try again.', {
      sessionId: this.#sessionId,
    });
  }
}

function textsOf({ reply }: Answer): string[] {
  return (reply as readonly Buffer[]).map(String);
}
