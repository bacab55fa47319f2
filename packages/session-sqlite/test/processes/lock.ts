// Holds the write lock of a database until its input ends. lock.ts <path>
import { DatabaseSync } from 'node:sqlite';

const database = new DatabaseSync(process.argv[2] ?? '', { timeout: 5000 });
database.exec('BEGIN IMMEDIATE');
process.stdout.write('locked\n');
process.stdin.resume();
process.stdin.on('end', () => {
  database.exec('ROLLBACK');
  database.close();
});
