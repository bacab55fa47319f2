import { checkStoreUrl, StoredSessionStore } from '@agents/core/session';

import { readOptions } from './arguments.ts';
import type { MongoDBConnection, MongoDBSessionOptions } from './options.ts';
import type { MongoDBSession } from './session.ts';
import { MongoDBStore } from './store-backend.ts';

/**
 * All sessions of two collections, those of the Python SDK too: lists, copies, retention, metadata, export and import.
 *
 * @throws UserError `session_name_invalid`, and for options of a wrong kind
 * @example
 * await using store = MongoDBSessionStore.open('mongodb://localhost');
 * const { sessions } = await store.list({ prefix: 'user-', withCount: true });
 * await store.prune({ idleForMs: 30 * 24 * 60 * 60 * 1000 });
 */
export class MongoDBSessionStore extends StoredSessionStore<MongoDBSession> {
  constructor(options: MongoDBConnection & MongoDBSessionOptions) {
    const config = readOptions(options, 'MongoDBSessionStore');
    super(new MongoDBStore(config), { name: 'MongoDBSessionStore', timeoutMs: config.timeoutMs });
  }

  /** `mongodb://…`, `mongodb+srv://…`; the default options otherwise. Close it when done. */
  static open(url: string): MongoDBSessionStore {
    return new MongoDBSessionStore({
      url: checkStoreUrl(url, ['mongodb', 'mongodb+srv'], 'MongoDBSessionStore.open()'),
    });
  }
}
