import { resetAll } from '../base/reset.ts';

/**
 * Undoes every `set…` and `configure…` of the process: logging, tracing, model provider, defaults of OpenAI.
 * @example afterEach(() => resetDefaults())
 */
export function resetDefaults(): void {
  resetAll();
}
