import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { RunStreamEvent } from '../index.ts';
import { idle } from '../../test/run-kit.ts';
import { EventQueue } from './event-queue.ts';

it('lets go of what was read, also while its reader lags behind', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const queue = new EventQueue();
  const reader = queue.reader();
  const push = (): WeakRef<RunStreamEvent> => {
    const event = { type: 'raw_response_event', data: {} } as unknown as RunStreamEvent;
    queue.push(event);
    return new WeakRef(event);
  };
  const read = push();
  const unread = push();
  await reader.next();
  await idle();
  collect();
  expect(read.deref()).toBeUndefined();
  expect(unread.deref()).toBeDefined();
});
