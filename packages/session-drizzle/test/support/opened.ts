import { afterAll, beforeAll } from 'vitest';

import { open } from './databases.ts';
import type { DriverName, Opened } from './databases.ts';
import { makeTables } from './tables.ts';

/** A database with our tables for the tests of a `describe`; there is nothing in the object before the first of them runs. */
export function openedFor(driver: DriverName): Opened {
  const opened = {} as Opened;
  // PGlite needs seconds to start on a machine that is busy.
  beforeAll(async () => {
    Object.assign(opened, await open(driver));
    await makeTables(opened);
  }, 60_000);
  afterAll(async () => await (opened as Partial<Opened>).close?.());
  return opened;
}
