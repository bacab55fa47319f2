import type { AgentTables } from './tables.ts';

/** A column, or what makes one, of whatever dialect: it is only passed on. */
interface Column {
  notNull(): Column;
  primaryKey(): Column;
}
/** Of a table; each dialect has a type of its own for them. */
type Columns = Readonly<Record<'sessionId' | 'operationId' | 'createdAt', never>>;

/** What the modules of drizzle for servers have in common, as far as these tables need it. */
export interface Declaring<Table extends object> {
  readonly table: (
    name: string,
    columns: Readonly<Record<string, Column>>,
    extra?: (own: Columns) => unknown[],
  ) => Table;
  /** Of messages; a database counts it up. */
  readonly id: Column;
  /** Text of ids, which can be a key. */
  readonly key: (name: string) => Column;
  readonly text: (name: string) => Column;
  /** When a row was made, unless something else is said. */
  readonly moment: (name: string) => Column;
  readonly foreignKey: (config: { name: string; columns: [never]; foreignColumns: [never] }) => {
    onDelete(action: 'cascade'): unknown;
  };
  readonly primaryKey: (config: { name: string; columns: [never, never] }) => unknown;
  readonly index: (name: string) => { on(...columns: [never, never]): unknown };
}

/** The tables as all servers have them; SQLite's have no keys of ours to `agent_sessions`. */
export function declareTables<Table extends object>(
  names: Readonly<Record<keyof AgentTables, string>>,
  { table, id, key, text, moment, foreignKey, primaryKey, index }: Declaring<Table>,
): AgentTables<Table> {
  const agentSessions = table(names.agentSessions, {
    sessionId: key('session_id').primaryKey(),
    createdAt: moment('created_at').notNull(),
    updatedAt: moment('updated_at').notNull(),
  }) as Table & { readonly sessionId: never };
  /** With the name that PostgreSQL gives to a key without one: Python's has none. */
  const belongs = (name: string, sessionId: never): unknown =>
    foreignKey({
      name: `${name}_session_id_fkey`,
      columns: [sessionId],
      foreignColumns: [agentSessions.sessionId],
    }).onDelete('cascade');
  const agentMessages = table(
    names.agentMessages,
    {
      id: id.primaryKey(),
      sessionId: key('session_id').notNull(),
      messageData: text('message_data').notNull(),
      createdAt: moment('created_at').notNull(),
    },
    ({ sessionId, createdAt }) => [
      belongs(names.agentMessages, sessionId),
      index(`idx_${names.agentMessages}_session_time`).on(sessionId, createdAt),
    ],
  );
  const agentSessionOperations = table(
    names.agentSessionOperations,
    {
      sessionId: key('session_id').notNull(),
      operationId: key('operation_id').notNull(),
      digest: text('digest').notNull(),
      result: text('result'),
      createdAt: moment('created_at').notNull(),
    },
    ({ sessionId, operationId }) => [
      primaryKey({ name: `${names.agentSessionOperations}_pkey`, columns: [sessionId, operationId] }),
      belongs(names.agentSessionOperations, sessionId),
    ],
  );
  const agentSessionMetadata = table(
    names.agentSessionMetadata,
    { sessionId: key('session_id').primaryKey(), data: text('data').notNull() },
    ({ sessionId }) => [belongs(names.agentSessionMetadata, sessionId)],
  );
  return { agentSessions, agentMessages, agentSessionOperations, agentSessionMetadata };
}
