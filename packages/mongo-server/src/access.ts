import { Binary } from 'mongodb';

import { authenticationFailed, CommandError } from './errors.ts';
import { ScramLogin } from './scram.ts';
import { int } from './values.ts';
import type { Doc } from './values.ts';

/** By name. */
export type Users = Readonly<Record<string, { readonly password: string; readonly readOnly?: boolean | undefined }>>;

/** What the server knows of a connection. */
export interface Connection {
  user?: string | undefined;
  login?: ScramLogin | undefined;
}

const WITHOUT_LOGIN = new Set(['hello', 'ismaster', 'isMaster', 'ping', 'buildInfo', 'buildinfo', 'endSessions']);
const READS = new Set(['find', 'aggregate', 'count', 'distinct', 'getMore', 'killCursors', 'listIndexes', 'explain']);
const ADMIN_READS = new Set(['listCollections', 'listDatabases', 'getCmdLineOpts']);

/** Who may do what; everything, where there are no users. */
export class Access {
  readonly #users: Users | undefined;

  constructor(users: Users | undefined) {
    this.#users = users;
  }

  /** @throws CommandError */
  check(command: string, database: string, { user }: Connection): void {
    if (this.#users === undefined || WITHOUT_LOGIN.has(command) || command.startsWith('sasl')) return;
    if (user === undefined) throw new CommandError(13, 'Unauthorized', `Command ${command} requires authentication`);
    if (this.#users[user]?.readOnly !== true || READS.has(command) || ADMIN_READS.has(command)) return;
    throw new CommandError(13, 'Unauthorized', `not authorized on ${database} to execute command ${command}`);
  }

  /** What `hello` tells who is about to log in. */
  get mechanisms(): Doc {
    return this.#users === undefined ? {} : { saslSupportedMechs: ['SCRAM-SHA-256'] };
  }

  /** `saslStart`, `saslContinue`. @throws CommandError */
  login(command: string, { payload, mechanism }: Doc, connection: Connection): Doc {
    const message = payload instanceof Binary ? Buffer.from(payload.buffer).toString() : '';
    if (command === 'saslStart') {
      if (mechanism !== 'SCRAM-SHA-256' || this.#users === undefined) throw authenticationFailed();
      const passwords = new Map(Object.entries(this.#users).map(([name, { password }]) => [name, password]));
      connection.login = new ScramLogin(message, passwords);
      return answer(connection.login.challenge, false);
    }
    const { login } = connection;
    connection.login = undefined;
    if (login === undefined) throw authenticationFailed();
    const last = login.finish(message);
    connection.user = login.user;
    return answer(last, true);
  }
}

function answer(payload: string, done: boolean): Doc {
  return { conversationId: int(1), done, payload: new Binary(Buffer.from(payload)), ok: 1 };
}
