import { SessionOutcomeUnknownError } from './errors.ts';

const ATTEMPTS = 3;

/** A change with an operation id, repeated while nobody knows whether it was stored. */
export async function settled<R>(change: () => Promise<R>): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change();
    } catch (error) {
      if (!(error instanceof SessionOutcomeUnknownError) || attempt === ATTEMPTS) throw error;
    }
  }
}
