import { provide } from '../../../scripts/services.mjs';

/** The servers that the test command did not start yet. */
export default async function setup() {
  return await provide(['postgres', 'mariadb']);
}
