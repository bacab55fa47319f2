import { provide } from '../../../scripts/services.mjs';

/** The MongoDB that the test command did not start yet. */
export default async function setup() {
  return await provide(['mongo']);
}
