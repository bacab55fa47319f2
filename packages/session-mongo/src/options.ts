import type { SessionOptions } from '@agents/core/session';
import type { MongoClient, MongoClientOptions } from 'mongodb';

/** A client is shared and never closed here; one made from a `url` belongs to the object. */
export type MongoDBConnection =
  | { client: MongoClient; url?: undefined }
  | { url: string; client?: undefined; clientOptions?: MongoClientOptions | undefined };

export interface MongoDBOptions {
  /** Default `agents`. */
  database?: string | undefined;
  /** Made before the first write; `false` where the user may not: then they have to be there. Default `true`. */
  createIndexes?: boolean | undefined;
}

export interface MongoDBSessionOptions extends MongoDBOptions, SessionOptions {
  /** Default `agent_sessions`. */
  sessionsCollection?: string | undefined;
  /** Default `agent_messages`. */
  messagesCollection?: string | undefined;
  /** Life of a session after its last append, by TTL indexes on a date field. Default: none. */
  ttlMs?: number | null | undefined;
}
