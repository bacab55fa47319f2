import { Binary, Long } from 'mongodb';

import { Access } from './access.ts';
import type { Connection, Users } from './access.ts';
import { Collection } from './collection.ts';
import type { IndexSpec } from './collection.ts';
import { Cursors } from './cursors.ts';
import { CommandError } from './errors.ts';
import { FailPoints } from './fail-points.ts';
import { aggregated, plan, projected, select } from './reads.ts';
import { Transaction } from './store.ts';
import type { Collections, Store } from './store.ts';
import { int, plainOf, valueAt } from './values.ts';
import type { Doc } from './values.ts';
import { findAndModify, insert, MAX_DOCUMENT_BYTES, remove, update } from './writes.ts';
import { MAX_MESSAGE_BYTES } from './wire.ts';

/** What the server says of itself. */
export interface Role {
  /** Its address as members of the replica set know it; `undefined`: a server of its own. */
  readonly replicaSet?: { readonly name: string; readonly address: string } | undefined;
  /** Who may log in, by SCRAM-SHA-256. Default: nobody has to. */
  readonly users?: Users | undefined;
}

const WRITES = new Set(['insert', 'update', 'delete', 'findAndModify', 'findandmodify']);

/** Answers commands, one at a time: each is atomic. */
export class Commands {
  readonly #store: Store;
  readonly #role: Role;
  readonly #cursors = new Cursors();
  readonly #access: Access;
  readonly #failPoints = new FailPoints();
  /** Under way, by session. */
  readonly #transactions = new Map<string, { readonly number: string; readonly transaction: Transaction }>();

  constructor(store: Store, role: Role) {
    this.#store = store;
    this.#role = role;
    this.#access = new Access(role.users);
  }

  answer(body: Doc, connection: Connection = {}): Doc {
    const name = Object.keys(body)[0] ?? '';
    try {
      if (name === 'saslStart' || name === 'saslContinue') return this.#access.login(name, body, connection);
      if (name === 'configureFailPoint') return this.#failPoints.configure(body);
      const database = text(body['$db']);
      this.#access.check(name, database, connection);
      const beside = this.#failPoints.check(name, `${database}.${text(body[name])}`);
      return { ...this.#withSession(name, body), ...beside };
    } catch (error) {
      // What a refused command had done is undone nowhere: each of them checks before it changes, statement by statement.
      this.#store.commit();
      if (!(error instanceof CommandError)) throw error;
      const { code, codeName, message, labels, details } = error;
      return {
        ok: 0,
        errmsg: message,
        code: int(code),
        codeName,
        ...details,
        ...(labels.length > 0 && { errorLabels: labels }),
      };
    }
  }

  /** Removes what is older than its TTL index allows. */
  expire(now: number): void {
    for (const { collection } of this.#store.list()) {
      for (const { key, expireAfterSeconds } of collection.indexes) {
        if (expireAfterSeconds === undefined) continue;
        for (const [id, { plain }] of collection.entries()) {
          const date = valueAt(plain, Object.keys(key)[0] ?? '');
          if (date instanceof Date && date.getTime() + expireAfterSeconds * 1000 <= now) collection.remove(id);
        }
      }
    }
    this.#store.commit();
  }

  /** Retries of writes and transactions: what a command is to its session. */
  #withSession(name: string, body: Doc): Doc {
    const { lsid, txnNumber } = body;
    if (txnNumber === undefined) return this.#done(this.#run(name, body, this.#store));
    if (!this.#role.replicaSet)
      throw new CommandError(
        20,
        'IllegalOperation',
        'Transaction numbers are only allowed on a replica set member or mongos',
      );
    const session = sessionOf(lsid);
    const number = String(plainOf(txnNumber));
    if (body['autocommit'] === false) return this.#inTransaction(name, body, session, number);
    const known = this.#store.answered(session, number);
    if (known) return known;
    const reply = this.#run(name, body, this.#store);
    this.#store.commit(WRITES.has(name) ? { session, number, reply } : undefined);
    return reply;
  }

  #inTransaction(name: string, body: Doc, session: string, number: string): Doc {
    let current = this.#transactions.get(session);
    if (body['startTransaction'])
      this.#transactions.set(session, (current = { number, transaction: new Transaction(this.#store) }));
    if (current?.number !== number) {
      if (name === 'commitTransaction' && this.#store.answered(session, number)) return { ok: 1 };
      throw new CommandError(
        251,
        'NoSuchTransaction',
        `Given transaction number ${number} does not match any in-progress transactions.`,
        ['TransientTransactionError'],
      );
    }
    try {
      if (name === 'abortTransaction') {
        this.#transactions.delete(session);
        return this.#done({ ok: 1 });
      }
      if (name !== 'commitTransaction') return this.#done(this.#run(name, body, current.transaction));
      this.#transactions.delete(session);
      current.transaction.commit();
      const reply = { ok: 1 };
      this.#store.commit({ session, number, reply });
      return reply;
    } catch (error) {
      this.#transactions.delete(session);
      throw error;
    }
  }

  #done(reply: Doc): Doc {
    this.#store.commit();
    return reply;
  }

  #run(name: string, body: Doc, collections: Collections): Doc {
    const database = text(body['$db']) || 'admin';
    const target = text(body[name]);
    const existing = (): Collection | undefined => collections.find(database, target);
    /** What writes into a collection makes it; what changes or removes documents of it does not. */
    const opened = (makes = true): Collection =>
      makes ? collections.open(database, target) : (existing() ?? new Collection(target));
    const docs = (member: string): Doc[] => (body[member] ?? []) as Doc[];
    switch (name) {
      case 'insert':
        return insert(opened(), docs('documents'), body['ordered']);
      case 'update':
        return update(opened(docs('updates').some(({ upsert }) => upsert === true)), docs('updates'), body['ordered']);
      case 'delete':
        return remove(opened(false), docs('deletes'), body['ordered']);
      case 'findAndModify':
      case 'findandmodify':
        return findAndModify(opened(body['upsert'] === true), body);
      case 'find': {
        const found = select(existing(), { ...body, skip: number(body['skip']), limit: number(body['limit']) });
        const results = found.map(([, one]) => projected(one, body['projection']));
        return this.#cursors.first(
          `${database}.${target}`,
          results,
          number(body['batchSize']),
          Boolean(body['singleBatch']) || (number(body['limit']) ?? 0) < 0,
        );
      }
      case 'aggregate': {
        const results = aggregated(existing(), docs('pipeline'), (other) => collections.find(database, other));
        return this.#cursors.first(
          `${database}.${target}`,
          results,
          number(valueAt(body['cursor'], 'batchSize')),
          false,
        );
      }
      case 'count':
        return {
          n: int(
            select(existing(), { filter: body['query'], skip: number(body['skip']), limit: number(body['limit']) })
              .length,
          ),
          ok: 1,
        };
      case 'distinct': {
        const values = select(existing(), { filter: body['query'] }).flatMap(
          ([, { doc }]) => valueAt(doc, text(body['key'])) ?? [],
        );
        return { values: [...new Map(values.map((value) => [JSON.stringify(value), value])).values()], ok: 1 };
      }
      case 'getMore':
        return this.#cursors.next((body['getMore'] as Long).toString(), number(body['batchSize']));
      case 'killCursors':
        return {
          cursorsKilled: ((body['cursors'] ?? []) as Long[]).filter((id) => this.#cursors.kill(id.toString())),
          ok: 1,
        };
      case 'explain': {
        const command = body['explain'] as Doc;
        const [kind = '', space] = Object.entries(command)[0] ?? [];
        const filter =
          kind === 'find'
            ? command['filter']
            : kind === 'findAndModify'
              ? command['query']
              : valueAt(command, kind === 'update' ? 'updates.0.q' : 'deletes.0.q');
        const index = plan(collections.find(database, text(space)), filter);
        return {
          queryPlanner: {
            winningPlan: index
              ? { stage: 'FETCH', inputStage: { stage: 'IXSCAN', indexName: index.name } }
              : { stage: 'COLLSCAN' },
          },
          ok: 1,
        };
      }
      default:
        return this.#administer(name, database, target, body);
    }
  }

  #administer(name: string, database: string, target: string, body: Doc): Doc {
    const store = this.#store;
    switch (name) {
      case 'hello':
      case 'ismaster':
      case 'isMaster':
        return { ...this.#hello(), ...(body['saslSupportedMechs'] !== undefined && this.#access.mechanisms) };
      case 'create':
        if (store.find(database, target))
          throw new CommandError(48, 'NamespaceExists', `Collection ${database}.${target} already exists.`);
        store.open(database, target);
        return { ok: 1 };
      case 'createIndexes': {
        const before = store.find(database, target)?.indexes.length ?? 1;
        for (const spec of body['indexes'] as Doc[]) store.addIndex(database, target, plainOf(spec) as IndexSpec & Doc);
        const after = store.open(database, target).indexes.length;
        return { numIndexesBefore: int(before), numIndexesAfter: int(after), ok: 1 };
      }
      case 'listIndexes': {
        const collection = store.find(database, target);
        if (!collection) throw new CommandError(26, 'NamespaceNotFound', `ns does not exist: ${database}.${target}`);
        const indexes = collection.indexes.map((spec) => ({
          v: int(2),
          ...spec,
          key: ints(spec.key),
          ...(spec.expireAfterSeconds !== undefined && { expireAfterSeconds: int(spec.expireAfterSeconds) }),
        }));
        return this.#cursors.first(`${database}.${target}`, indexes, undefined, false);
      }
      case 'dropIndexes':
        if (!store.dropIndex(database, target, text(body['index'])))
          throw new CommandError(27, 'IndexNotFound', `index not found with name [${text(body['index'])}]`);
        return { ok: 1 };
      case 'listCollections': {
        const collections = store
          .list(database)
          .map((one) => ({ name: one.name, type: 'collection', options: {}, info: { readOnly: false } }));
        const filtered = text(valueAt(body['filter'], 'name'));
        return this.#cursors.first(
          `${database}.$cmd.listCollections`,
          collections.filter((one) => filtered === '' || one.name === filtered),
          undefined,
          false,
        );
      }
      case 'listDatabases':
        return {
          databases: [...new Set(store.list().map((one) => one.database))].map((one) => ({
            name: one,
            sizeOnDisk: Long.ZERO,
            empty: false,
          })),
          totalSize: Long.ZERO,
          ok: 1,
        };
      case 'drop':
        if (!store.drop(database, target)) throw new CommandError(26, 'NamespaceNotFound', 'ns not found');
        return { ok: 1 };
      case 'dropDatabase':
        for (const one of store.list(database)) store.drop(database, one.name);
        return { dropped: database, ok: 1 };
      case 'ping':
      case 'endSessions':
      case 'killSessions':
        return { ok: 1 };
      case 'buildInfo':
      case 'buildinfo':
        return {
          version: '8.0.0',
          versionArray: [8, 0, 0, 0].map(int),
          gitVersion: 'agents-mongo-server',
          maxBsonObjectSize: int(MAX_DOCUMENT_BYTES),
          ok: 1,
        };
      case 'getCmdLineOpts':
        return { argv: ['agents-mongo-server'], parsed: {}, ok: 1 };
    }
    throw new CommandError(59, 'CommandNotFound', `no such command: '${name}'`);
  }

  #hello(): Doc {
    const { replicaSet } = this.#role;
    return {
      helloOk: true,
      ismaster: true,
      isWritablePrimary: true,
      ...(replicaSet && {
        setName: replicaSet.name,
        setVersion: int(1),
        hosts: [replicaSet.address],
        primary: replicaSet.address,
        me: replicaSet.address,
        secondary: false,
      }),
      maxBsonObjectSize: int(MAX_DOCUMENT_BYTES),
      maxMessageSizeBytes: int(MAX_MESSAGE_BYTES),
      maxWriteBatchSize: int(100_000),
      localTime: new Date(),
      logicalSessionTimeoutMinutes: int(30),
      minWireVersion: int(0),
      maxWireVersion: int(25),
      readOnly: false,
      ok: 1,
    };
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number | undefined {
  return value === undefined ? undefined : Number(plainOf(value));
}

function ints(key: Doc): Doc {
  return Object.fromEntries(
    Object.entries(key).map(([field, value]) => [field, typeof value === 'number' ? int(value) : value]),
  );
}

function sessionOf(lsid: unknown): string {
  const id = valueAt(lsid, 'id');
  return id instanceof Binary ? id.toString('hex') : '';
}
