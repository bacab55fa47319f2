import { provide } from '../../../scripts/services.mjs';

/** The PostgreSQL that the test command did not start yet. */
export default async function setup() {
  return await provide(['postgres']);
}
