import type { Opened } from './databases.ts';

/** By the package's own module of the dialect. */
export async function makeTables({ db, dialect }: Pick<Opened, 'db' | 'dialect'>): Promise<void> {
  const { createTables } = await (dialect === 'pg'
    ? import('../../src/pg.ts')
    : dialect === 'mysql'
      ? import('../../src/mysql.ts')
      : import('../../src/sqlite.ts'));
  await createTables(db);
}
