import { describe, expect, it } from 'vitest';

import { mysqlErrors } from './dialects/mysql.ts';
import { pgErrors } from './dialects/pg.ts';
import { sqliteErrors } from './dialects/sqlite.ts';
import { causes, driverError } from './errors.ts';
import type { ErrorKinds, ErrorLike } from './errors.ts';

const pg = (code: string): ErrorLike => ({ code, severity: 'ERROR' });
const mysql = (errno: number): ErrorLike => ({ errno, sqlState: 'HY000' });
const said = (message: string): ErrorLike => ({ message });

const kinds: readonly [string, ErrorKinds, Readonly<Record<keyof ErrorKinds, readonly ErrorLike[]>>, ErrorLike[]][] = [
  [
    'PostgreSQL',
    pgErrors,
    {
      isAnswer: [pg('23503'), pg('57014'), pg('0A000')],
      wasNeverSent: [
        { code: 'CONNECT_TIMEOUT' },
        said('timeout exceeded when trying to connect'),
        said('Cannot use a pool after calling end on the pool'),
        said('Connection terminated due to connection timeout'),
        said('The server does not support SSL connections'),
        said('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      ],
      isConflict: [pg('40001'), pg('40P01'), pg('23505')],
      isMissing: [pg('42P01'), pg('42703'), pg('3F000')],
    },
    // The server that goes does not say how far it came; and what no server said is no answer.
    [pg('57P01'), pg('57P02'), pg('08006'), { code: '23505' }, { code: 'ECONNRESET' }, said('SASL')],
  ],
  [
    'MySQL and MariaDB',
    mysqlErrors,
    {
      isAnswer: [mysql(1062), mysql(1064)],
      wasNeverSent: [said('Pool is closed.')],
      isConflict: [mysql(1213), mysql(1205), mysql(1020)],
      isMissing: [mysql(1146), mysql(1054), mysql(1049)],
    },
    [mysql(1053), mysql(1927), mysql(3168), mysql(4031), { errno: 1062 }, { errno: -104, code: 'ECONNRESET' }],
  ],
  [
    'SQLite',
    sqliteErrors,
    {
      isAnswer: [{ errcode: 19 }, { code: 'SQLITE_CONSTRAINT' }],
      wasNeverSent: [],
      isConflict: [
        { errcode: 5 },
        { errcode: 517 },
        { errcode: 6 },
        { errno: 5 },
        { code: 'SQLITE_BUSY' },
        { code: 'SQLITE_BUSY_SNAPSHOT' },
        { code: 'SQLITE_LOCKED_SHAREDCACHE' },
      ],
      isMissing: [
        said('no such table: agent_messages'),
        said('no such column: data'),
        said('table agent_messages has no column named data'),
      ],
    },
    [{ code: 'ECONNRESET' }, { code: 'HRANA_CLOSED_ERROR' }],
  ],
];

describe.each(kinds)('an error of %s', (_name, errors, examples, unclear) => {
  it('is a conflict, a table that is not there, an answer or a request that was never sent [SESS-151, 263, 266]', () => {
    for (const [kind, list] of Object.entries(examples))
      for (const error of list)
        expect(errors[kind as keyof ErrorKinds](error), `${kind} ${JSON.stringify(error)}`).toBe(true);
    for (const kind of ['isConflict', 'isMissing'] as const)
      for (const error of examples[kind]) {
        const other = kind === 'isConflict' ? 'isMissing' : 'isConflict';
        expect(errors[other](error), `${other} ${JSON.stringify(error)}`).toBe(false);
      }
  });

  it('says nothing of what was done where the connection went [SESS-151]', () => {
    for (const error of unclear)
      for (const kind of ['isAnswer', 'wasNeverSent', 'isConflict'] as const)
        expect(errors[kind](error), `${kind} ${JSON.stringify(error)}`).toBe(false);
  });

  it('was never sent where no connection was made, or its server was not trusted [SESS-151]', () => {
    for (const code of [
      'ECONNREFUSED',
      'ENOTFOUND',
      'EAI_AGAIN',
      'EHOSTUNREACH',
      'ENETUNREACH',
      'ENOENT',
      'CERT_HAS_EXPIRED',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'CRL_HAS_EXPIRED',
      'CRL_NOT_YET_VALID',
      'INVALID_CA',
      'HOSTNAME_MISMATCH',
    ])
      expect(errors.wasNeverSent({ code }), code).toBe(true);
    expect(errors.wasNeverSent({ code: 'ECONNRESET', syscall: 'connect' })).toBe(true);
    for (const code of ['ECONNRESET', 'EPIPE', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ETIMEDOUT'])
      expect(errors.wasNeverSent({ code, syscall: 'read' }), code).toBe(false);
  });
});

describe('the error that is thrown', () => {
  it('is that of the driver, without what drizzle wraps around it, in whichever release [SESS-151]', () => {
    const own = new Error('of the driver');
    class DrizzleError extends Error {}
    Object.assign(DrizzleError, { [Symbol.for('drizzle:entityKind')]: 'DrizzleError' });
    const failed = Object.assign(new Error('Failed query: insert …', { cause: own }), { query: 'insert', params: [1] });
    expect(driverError(failed)).toBe(own);
    expect(driverError(new DrizzleError('Rollback', { cause: failed }))).toBe(own);
    const theirs = new Error('of the user', { cause: own });
    expect(driverError(theirs)).toBe(theirs);
    expect(driverError('no error')).toBe('no error');
  });

  it('shows no statement and no value to who prints it [SESS-151]', () => {
    const error = Object.assign(new Error('no'), { sql: 'insert', query: 'insert', params: ['secret'] });
    expect(Object.keys(driverError(error) as object)).toEqual([]);
    expect((error as { params: unknown }).params).toEqual(['secret']);
  });

  it('has a chain of causes that ends, be it a circle', () => {
    const first = new Error('first');
    const second = new Error('second', { cause: first });
    first.cause = second;
    expect(causes(second)).toEqual([second, first]);
    expect(causes('text')).toEqual([]);
  });
});
