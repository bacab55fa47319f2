import { answersLater } from './at-once.ts';
import { envFlag } from './env.ts';
import { checkOptions, kinds } from './options.ts';
import { onReset } from './reset.ts';

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

export interface LogRecord {
  readonly level: Exclude<LogLevel, 'silent'>;
  /** `openai.agents` or `openai.agents.<scope>`. */
  readonly logger: string;
  readonly message: string;
  readonly data: unknown;
}

export interface LoggingOptions {
  /** Default `warn`. */
  level?: LogLevel | undefined;
  /** Default (and `null`): the runtime's console. */
  sink?: ((record: LogRecord) => void) | null | undefined;
  /** Default `true`: no prompts and answers in logs and error messages. */
  dontLogModelData?: boolean | undefined;
  /** Default `true`: no arguments and outputs in logs and error messages. */
  dontLogToolData?: boolean | undefined;
}

export interface Logger {
  debug(message: string, data?: unknown): void;
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
  readonly dontLogModelData: boolean;
  readonly dontLogToolData: boolean;
}

const RANK = { silent: 0, error: 1, warn: 2, info: 3, debug: 4 } as const;

interface Settings {
  level: LogLevel;
  sink: (record: LogRecord) => void;
  dontLogModelData: boolean;
  dontLogToolData: boolean;
}

/** Made at first use, since the environment is not read at import. */
let settings: Settings | undefined;
const loggers = new Map<string, Logger>();

onReset(() => {
  settings = undefined;
});

/**
 * For the whole process. An option that is not given stays as it is.
 *
 * @example
 * configureLogging({ level: 'debug', sink: (record) => myLogger.log(record.level, record.message, record.data) });
 *
 * @throws UserError for unknown options and wrong kinds
 */
export function configureLogging(options: LoggingOptions): void {
  checkOptions(
    options,
    {
      level: kinds.oneOf('silent', 'error', 'warn', 'info', 'debug'),
      sink: kinds.nullable(kinds.function),
      dontLogModelData: kinds.boolean,
      dontLogToolData: kinds.boolean,
    },
    'configureLogging()',
  );
  const now = current();
  settings = {
    level: options.level ?? now.level,
    sink: options.sink === undefined ? now.sink : (options.sink ?? consoleSink),
    dontLogModelData: options.dontLogModelData ?? now.dontLogModelData,
    dontLogToolData: options.dontLogToolData ?? now.dontLogToolData,
  };
}

/**
 * The logger of these packages; adapters use it too. Its lines go where `configureLogging` says, by default to the
 * console from level `warn` up. What may hold a prompt, an answer, an argument, an output or the text of an exception
 * belongs into `data` or `message` only where `dontLogModelData` / `dontLogToolData` is `false`.
 *
 * @param scope part of the name after `openai.agents.` (`tracing`)
 */
export function getLogger(scope?: string): Logger {
  const name = scope === undefined || scope === '' ? 'openai.agents' : `openai.agents.${scope}`;
  let logger = loggers.get(name);
  if (logger === undefined) {
    logger = makeLogger(name);
    loggers.set(name, logger);
  }
  return logger;
}

/**
 * What a log line may say of an exception or a value while its content must not be logged: the name of its class. No
 * getter and no `toString` of the value is called.
 */
export function className(value: unknown): string {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null)
    return value === null ? 'null' : typeof value;
  try {
    for (let at: unknown = Object.getPrototypeOf(value); at !== null; at = Object.getPrototypeOf(at)) {
      const constructor: unknown = Object.getOwnPropertyDescriptor(at, 'constructor')?.value;
      if (typeof constructor !== 'function') continue;
      const name: unknown = Object.getOwnPropertyDescriptor(constructor, 'name')?.value;
      if (typeof name === 'string' && name !== '') return name;
    }
  } catch {
    // A proxy that refuses to be looked at.
  }
  return typeof value;
}

function current(): Settings {
  settings ??= {
    level: 'warn',
    sink: consoleSink,
    dontLogModelData: envFlag('OPENAI_AGENTS_DONT_LOG_MODEL_DATA', true),
    dontLogToolData: envFlag('OPENAI_AGENTS_DONT_LOG_TOOL_DATA', true),
  };
  return settings;
}

function makeLogger(name: string): Logger {
  const log = (level: LogRecord['level'], message: string, data: unknown): void => {
    const { level: threshold, sink } = current();
    if (RANK[level] > RANK[threshold]) return;
    try {
      // A sink may be an async function in disguise; its failure must not become an unhandled rejection.
      answersLater(sink({ level, logger: name, message, data }));
    } catch {
      // Logging never fails a run.
    }
  };
  return {
    debug: (message, data) => log('debug', message, data),
    info: (message, data) => log('info', message, data),
    warn: (message, data) => log('warn', message, data),
    error: (message, data) => log('error', message, data),
    get dontLogModelData() {
      return current().dontLogModelData;
    },
    get dontLogToolData() {
      return current().dontLogToolData;
    },
  };
}

function consoleSink({ level, logger, message, data }: LogRecord): void {
  const line = `[${logger}] ${message}`;
  // The one place of these packages that writes to the console.
  // oxlint-disable-next-line no-console
  const write = console[level];
  if (data === undefined) write(line);
  else write(line, data);
}
