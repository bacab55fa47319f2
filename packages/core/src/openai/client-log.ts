import { getLogger } from '../base/logger.ts';

/**
 * Where the lines of a client go that we made: through our logger, like all others. They may hold what a model said, URLs
 * and headers, so that by default only that there is one is told; what the client says of its requests is told by the
 * models themselves.
 */
export const clientLog: {
  error(message: string, ...rest: unknown[]): void;
  warn(message: string, ...rest: unknown[]): void;
  info(): void;
  debug(): void;
} = {
  error: (...line) => forward('error', line),
  warn: (...line) => forward('warn', line),
  info() {},
  debug() {},
};

function forward(level: 'error' | 'warn', line: readonly unknown[]): void {
  const log = getLogger('models');
  const text = 'The openai client logged a line';
  if (log.dontLogModelData) log[level](`${text}. Its text is redacted.`);
  else log[level](`${text}.`, line);
}
