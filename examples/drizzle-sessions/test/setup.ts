import { provide } from '../../../scripts/services.mjs';

/** The PostgreSQL that the test command did not start yet. */
export default async function setup(): Promise<() => Promise<void>> {
  return await provide(['postgres']);
}
