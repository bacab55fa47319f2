// `@agents/core/session`: what authors of backends need; loads no run loop.
export { contentDigest, supports } from './sessions/contract.ts';
export type {
  ContextAwareSession,
  HistoryOperation,
  HistoryTransaction,
  ItemPolicySession,
  ManagedSession,
  Session,
  SessionCapabilities,
  SessionInputCallback,
  SessionOptions,
  SessionSettings,
  TransactionalSession,
  VersionedSession,
} from './sessions/contract.ts';
export {
  SessionBusyError,
  SessionClosedError,
  SessionError,
  SessionItemError,
  SessionOutcomeUnknownError,
  SessionSchemaError,
  SessionVersionConflictError,
} from './sessions/errors.ts';
export type { SessionErrorDetails } from './sessions/errors.ts';
export { decodeItem, encodeItem } from './sessions/codec.ts';
export { MemorySession } from './sessions/memory.ts';
export { EncryptedSession } from './sessions/encrypted.ts';
export { KeyValueSession } from './sessions/key-value.ts';
export type { KeyValueStore } from './sessions/key-value.ts';
export { convertJsSdkItems } from './sessions/js-sdk-items.ts';
export { migrateSession } from './sessions/migrate.ts';
export { StoredSession, sessionOptionChecks } from './sessions/stored-session.ts';
export type { StoredSessionSetup } from './sessions/stored-session.ts';
export { StoredSessionStore } from './sessions/stored-store.ts';
export type { StoredSessionStoreSetup } from './sessions/stored-store.ts';
export { mergeMetadata, noSuchSession, sessionExists } from './sessions/store-backend.ts';
export type { SessionPage, SessionPageResult, SessionStoreBackend, StagedHistory } from './sessions/store-backend.ts';
export { checkStoreUrl } from './sessions/store-url.ts';
export { MemorySessionStore } from './sessions/memory-store.ts';
export type { SessionInfo, SessionQuery, SessionStore } from './sessions/store.ts';
export { matchSuffix, operationMismatch, suffixMismatch, versionConflict } from './sessions/history-backend.ts';
export type {
  HistoryBackend,
  HistoryOperationKey,
  HistoryWrite,
  StoredHistory,
  StoredRecord,
} from './sessions/history-backend.ts';
export { checkOptions, kinds } from './base/options.ts';
export type { Check } from './base/options.ts';
export { checkStoreName } from './sessions/settings.ts';
