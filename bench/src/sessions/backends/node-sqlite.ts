import { encodeItem } from '@agents/core/session';
import { join } from 'node:path';
import { Floor } from '../sqlite/floor.ts';
import { openStore } from '../sqlite/session.ts';
import type { OpenBackend } from '../store.ts';

/** `SQLiteSession` on `node:sqlite`. Every commit is on the disk when it returns. Each session has a file of its own. */
export const open: OpenBackend = async (folder) => ({
  floor: async (id) => new Floor(id, join(folder, `bare-${id}.db`), 'FULL', (item) => encodeItem(item)),
  session: async (id) => openStore(id, join(folder, `session-${id}.db`), 'FULL'),
  close: async () => {},
});
