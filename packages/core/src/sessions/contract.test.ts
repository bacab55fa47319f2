import { describe, expect, it } from 'vitest';

import { AgentsError } from '../base/errors.ts';
import { contentDigest, supports } from './contract.ts';
import {
  SessionBusyError,
  SessionClosedError,
  SessionError,
  SessionItemError,
  SessionOutcomeUnknownError,
  SessionSchemaError,
  SessionVersionConflictError,
} from './errors.ts';
import { MemorySession } from './memory.ts';

const four = { getItems() {}, addItems() {}, popItem() {}, clearSession() {} };

describe('supports', () => {
  it('finds each capability by its members, nothing else [SESS-001, 031]', () => {
    const names = ['transactions', 'versions', 'runContext', 'itemPolicy'] as const;
    const of = (session: unknown) => names.filter((name) => supports(session, name));
    expect(of(new MemorySession())).toEqual(['transactions', 'versions']);
    expect(of(four)).toEqual([]);
    expect(of({ ...four, acceptsRunContext: true })).toEqual(['runContext']);
    expect(of({ ...four, acceptsRunContext: 1, readHistory() {}, appendIfVersion() {} })).toEqual([]);
    expect(of({ ...four, preserveReasoningItemIds: true })).toEqual(['itemPolicy']);
    expect(of({ ...four, prepareItemsForPersistence() {} })).toEqual(['itemPolicy']);
    expect(of({ applyHistoryTransaction() {} })).toEqual([]);
    expect(supports(new MemorySession(), 'toString' as never)).toBe(false);
  });

  it('never throws [SESS-031]', () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no');
        },
        has: () => {
          throw new Error('no');
        },
      },
    );
    for (const value of [undefined, null, 0, 'text', Symbol('x'), hostile, Object.create(null)])
      expect(supports(value, 'transactions')).toBe(false);
  });
});

describe('errors', () => {
  it('have their names, codes and data [SESS-034]', () => {
    const cause = new Error('why');
    const errors = [
      new SessionError('m', { sessionId: 's', cause }),
      new SessionClosedError('m', { sessionId: 's' }),
      new SessionSchemaError('m'),
      new SessionBusyError('m'),
      new SessionItemError('m', { index: 3, path: 'a.b', code: 'session_item_too_large' }),
      new SessionVersionConflictError('m', { expected: '1', actual: '2' }),
      new SessionOutcomeUnknownError('m', { operation: 'append', operationId: 'op' }),
    ];
    expect(errors.map(({ name, code }) => [name, code])).toEqual([
      ['SessionError', 'session_error'],
      ['SessionClosedError', 'session_closed'],
      ['SessionSchemaError', 'session_schema'],
      ['SessionBusyError', 'session_busy'],
      ['SessionItemError', 'session_item_too_large'],
      ['SessionVersionConflictError', 'session_version_conflict'],
      ['SessionOutcomeUnknownError', 'session_outcome_unknown'],
    ]);
    for (const error of errors)
      expect(error instanceof SessionError && error instanceof AgentsError && error instanceof Error).toBe(true);
    expect(errors[1]).not.toBeInstanceOf(SessionBusyError);
    expect(errors[0]).toMatchObject({ sessionId: 's', cause });
    expect(errors[4]).toMatchObject({ index: 3, path: 'a.b' });
    expect(errors[6]).toMatchObject({ operation: 'append', operationId: 'op' });
  });
});

it('the symbol of the digest is registered, so that package copies agree [SESS-036]', () => {
  expect(contentDigest).toBe(Symbol.for('agents.contentDigest'));
});
