import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { UserError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { SessionOptions } from '../sessions/contract.ts';
import { sessionOptionChecks, StoredSession } from '../sessions/stored-session.ts';
import { FileHistory } from './file-history.ts';

const TIMEOUT_MS = 30_000;

/**
 * One NDJSON file per session in `dir`, locked while written. For programs on one machine: a command line, a bot, a desktop
 * application. Several processes may use it; a process that is killed leaves all of a batch or nothing, and its lock is
 * broken by the next writer. The folder is made when it is first written to.
 *
 * @throws UserError `session_id_invalid`, and for options of a wrong kind
 * @example
 * const session = new FileSession('user-42', { dir: 'sessions' });
 * await run(agent, 'My name is Ada.', { session });
 */
export class FileSession<T extends object = AgentInputItem> extends StoredSession<T> {
  constructor(sessionId: string, options: SessionOptions & { dir: string | URL }) {
    checkOptions(options, { ...sessionOptionChecks, dir: folder }, 'FileSession');
    const given = options as typeof options | undefined;
    if (given?.dir === undefined) throw new UserError("FileSession needs the option 'dir'.");
    const { dir, ...rest } = given;
    const timeoutMs = rest.operationTimeoutMs ?? TIMEOUT_MS;
    // Now, so that a later chdir changes nothing.
    const path = resolve(typeof dir === 'string' ? dir : fileURLToPath(dir));
    // A call that waits for the lock gives up well before its time is up: then nothing was written.
    super(sessionId, (id) => new FileHistory(id, path, timeoutMs / 2), {
      name: 'FileSession',
      options: rest,
      timeoutMs,
    });
  }
}

function folder(value: unknown): string | undefined {
  const isFolder =
    (typeof value === 'string' && value.trim() !== '' && !value.startsWith('file:') && !value.includes('\0')) ||
    (value instanceof URL && value.protocol === 'file:');
  return isFolder ? undefined : 'the path of a folder, or a file: URL';
}
