import { provide } from '../../../scripts/services.mjs';

/** The Redis that the test command did not start yet. */
export default async function setup(): Promise<() => Promise<void>> {
  return await provide(['redis']);
}
