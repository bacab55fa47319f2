import { getLogger } from '../base/logger.ts';
import type { ModelResponse } from '../models/model.ts';

type Body = Readonly<Record<string, unknown>>;

/**
 * Debug lines of one call. By default they say that it started and how it ended, and nothing else; the request, the
 * answer and the text of an error need model-data logging. Headers, keys and URLs are in none.
 */
export const callLog: {
  started(body: Body): void;
  answered(response: Partial<ModelResponse>): void;
  failed(error: unknown): void;
} = {
  started(body) {
    const log = getLogger('models');
    if (log.dontLogModelData) log.debug('Calling the Responses API.');
    else log.debug('Calling the Responses API.', body);
  },
  answered(response) {
    const log = getLogger('models');
    if (log.dontLogModelData) log.debug('The Responses API answered.');
    else log.debug('The Responses API answered.', response);
  },
  failed(error) {
    const log = getLogger('models');
    if (log.dontLogModelData) log.debug('The call of the Responses API failed. Error details are redacted.');
    else log.debug('The call of the Responses API failed.', detailsOf(error));
  },
};

/** The message and the request id: a whole error of the client has headers. A getter that throws hides no error. */
function detailsOf(error: unknown): unknown {
  try {
    const { message, requestID } = error as { message?: unknown; requestID?: unknown };
    return { message, requestId: requestID ?? undefined };
  } catch {
    return undefined;
  }
}
