import type { OpenBackend } from './store.ts';
import type { Protocol } from './wire.ts';

const names = [
  'session-sqlite',
  'session-redis',
  'session-node-postgres',
  'session-postgres-js',
  'session-pglite',
  'session-mysql2',
  'session-better-sqlite3',
  'session-libsql',
] as const;
/** That of its measurement. */
export type BackendName = (typeof names)[number];
export const isBackend = (name: string): name is BackendName => Object.hasOwn(backends, name);

interface BackendEntry {
  /** What it is called in the table. */
  readonly title: string;
  readonly load: () => Promise<{ readonly open: OpenBackend }>;
  /** Default: it is embedded. */
  readonly server?: Protocol;
  /** It takes seconds to start. */
  readonly slow?: boolean;
}

/** The backends that are measured beside a floor. MongoDB is not: only a real server of it would say something. */
export const backends: Readonly<Record<BackendName, BackendEntry>> = {
  'session-sqlite': { title: 'SQLiteSession', load: () => import('./backends/node-sqlite.ts') },
  'session-redis': { title: 'RedisSession', load: () => import('./backends/redis.ts'), server: 'redis' },
  'session-node-postgres': {
    title: 'DrizzleSession, node-postgres',
    load: () => import('./backends/node-postgres.ts'),
    server: 'postgres',
  },
  'session-postgres-js': {
    title: 'DrizzleSession, postgres.js',
    load: () => import('./backends/postgres-js.ts'),
    server: 'postgres',
  },
  'session-pglite': { title: 'DrizzleSession, PGlite', load: () => import('./backends/pglite.ts'), slow: true },
  'session-mysql2': {
    title: 'DrizzleSession, mysql2 on MariaDB',
    load: () => import('./backends/mysql2.ts'),
    server: 'mariadb',
  },
  'session-better-sqlite3': {
    title: 'DrizzleSession, better-sqlite3',
    load: () => import('./backends/better-sqlite3.ts'),
  },
  'session-libsql': { title: 'DrizzleSession, libsql', load: () => import('./backends/libsql.ts') },
};
export const backendNames: readonly BackendName[] = names;
