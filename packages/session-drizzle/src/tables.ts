import { UserError } from '@agents/core';
import { checkOptions, checkStoreName, kinds } from '@agents/core/session';
import { sql } from 'drizzle-orm/sql/sql';
import type { SQLWrapper } from 'drizzle-orm/sql/sql';

import { kindsOf } from './database.ts';
import type { DialectName } from './database.ts';

/** The tables of one store; the module of a dialect (`@agents/session-drizzle/pg`, `/mysql`, `/sqlite`) is one. */
export interface AgentTables<Table extends object = object> {
  agentSessions: Table;
  agentMessages: Table;
  /** Of ours: by it an append that was repeated is stored once. */
  agentSessionOperations: Table;
  /** Of ours: only `setMetadata` of the store needs it. */
  agentSessionMetadata: Table;
}

/** How other names are asked for. */
export interface AgentTableOptions {
  names?: Partial<Record<keyof AgentTables, string>> | undefined;
  /** Of the database (PostgreSQL) or another database of the server (MySQL). It has to exist. Default: the connection's. */
  schema?: string | undefined;
}

/** Where a table is. */
export interface Place {
  readonly schema: string | undefined;
  readonly name: string;
}

type Role = 'sessions' | 'messages' | 'operations' | 'metadata';
export type TableNames = QuotedNames & {
  readonly places: Readonly<Record<Role, Place>>;
  /** Tells stores of one database apart. */
  readonly key: string;
};

export const DEFAULT_NAMES: Readonly<Record<keyof AgentTables, string>> = {
  agentSessions: 'agent_sessions',
  agentMessages: 'agent_messages',
  agentSessionOperations: 'agent_session_operations',
  agentSessionMetadata: 'agent_session_metadata',
};
const MEMBERS = {
  sessions: 'agentSessions',
  messages: 'agentMessages',
  operations: 'agentSessionOperations',
  metadata: 'agentSessionMetadata',
} as const satisfies Record<Role, keyof AgentTables>;
const ROLES = ['sessions', 'messages', 'operations', 'metadata'] as const;
const TABLE_KINDS: Readonly<Record<DialectName, string>> = {
  pg: 'PgTable',
  mysql: 'MySqlTable',
  sqlite: 'SQLiteTable',
};

/**
 * Only the names: the columns are the same in each. So nothing of a dialect has to be loaded for tables that nobody named.
 *
 * @throws UserError for what are no tables of this dialect
 */
export function readTables(tables: AgentTables | undefined, dialect: DialectName, name: string): TableNames {
  const place = (role: Role): Place => {
    const member = MEMBERS[role];
    if (tables === undefined) return { schema: undefined, name: DEFAULT_NAMES[member] };
    const table: unknown = tables[member];
    if (!kindsOf(table, 'object').includes(TABLE_KINDS[dialect]))
      throw new UserError(
        `'${member}' in option 'tables' of ${name} must be a table of @agents/session-drizzle/${dialect}, as 'db' is a database of that dialect.`,
      );
    return placeOf(table as object);
  };
  const places = {
    sessions: place('sessions'),
    messages: place('messages'),
    operations: place('operations'),
    metadata: place('metadata'),
  };
  return { ...namesOf(places), places, key: JSON.stringify(ROLES.map((role) => places[role])) };
}

/** Parts of statements. drizzle takes its time to join parts, so those without a schema have no parts of their own. */
type QuotedNames = Readonly<Record<Role, SQLWrapper>>;

export function namesOf(places: Readonly<Record<Role, Place>>): QuotedNames {
  const quoted = ({ schema, name }: Place): SQLWrapper =>
    schema === undefined ? sql.identifier(name) : sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  return {
    sessions: quoted(places.sessions),
    messages: quoted(places.messages),
    operations: quoted(places.operations),
    metadata: quoted(places.metadata),
  };
}

/** drizzle marks its tables with these. */
export function placeOf(table: object): Place {
  const marks = table as { readonly [mark: symbol]: unknown };
  const schema = marks[Symbol.for('drizzle:Schema')];
  return {
    schema: typeof schema === 'string' ? schema : undefined,
    name: String(marks[Symbol.for('drizzle:Name')]),
  };
}

/** The type of the ids of messages, as the table declares it. */
export function idTypeOf(messages: object): string {
  const columns = (messages as { readonly [mark: symbol]: unknown })[Symbol.for('drizzle:Columns')];
  const { id } = columns as { id: { getSQLType(): string } };
  return id.getSQLType();
}

/**
 * Names of a new set of tables.
 *
 * @param known members that the options may have
 * @param longest characters of a name, where what belongs to its table (keys, indexes) is named after it
 * @throws UserError for unknown options; `session_name_invalid`
 */
export function readNames(
  options: (AgentTableOptions & { idType?: string | undefined }) | undefined,
  {
    known = ['names', 'schema', 'idType'],
    reserved,
    longest,
  }: { readonly known?: readonly string[]; readonly reserved?: RegExp; readonly longest?: number } = {},
): { readonly names: Readonly<Record<keyof AgentTables, string>>; readonly schema: string | undefined } {
  const checks = { names: kinds.object, schema: kinds.any, idType: kinds.oneOf('serial', 'bigserial') };
  const allowed = Object.fromEntries(Object.entries(checks).filter(([member]) => known.includes(member)));
  checkOptions(options, allowed, 'createAgentTables()');
  const nameChecks = Object.fromEntries(Object.keys(DEFAULT_NAMES).map((member) => [member, kinds.any]));
  checkOptions(options?.names, nameChecks, "'names' of createAgentTables()");
  const given = Object.fromEntries(Object.entries(options?.names ?? {}).filter(([, name]) => name !== undefined));
  const names = { ...DEFAULT_NAMES, ...given };
  for (const name of Object.values(names)) {
    checkStoreName(name, 'table');
    if (reserved?.test(name) === true)
      throw invalid(`'${name}' is no table name: the database keeps such names for itself.`);
    if (longest !== undefined && name.length > longest)
      throw invalid(
        `'${name}' is too long for a table name: keys and indexes are named after it, so at most ${longest}.`,
      );
  }
  const different = new Set(Object.values(names).map((name) => name.toLowerCase()));
  if (different.size < Object.keys(DEFAULT_NAMES).length)
    throw invalid('createAgentTables() needs a name of its own for each table.');
  if (options?.schema !== undefined) checkStoreName(options.schema, 'schema');
  return { names, schema: options?.schema };
}

function invalid(message: string): UserError {
  return new UserError(message, { code: 'session_name_invalid' });
}
