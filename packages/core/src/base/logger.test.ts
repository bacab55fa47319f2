import { afterEach, describe, expect, test, vi } from 'vitest';
import { UserError } from './errors.ts';
import { className, configureLogging, getLogger } from './logger.ts';
import type { LogRecord } from './logger.ts';
import { resetAll } from './reset.ts';

afterEach(() => {
  resetAll();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

function recorded(): LogRecord[] {
  const records: LogRecord[] = [];
  configureLogging({ sink: (record) => void records.push(record) });
  return records;
}

describe('logger', () => {
  test('one name for all, scopes behind it; warnings and errors by default [RUN-1901]', () => {
    const records = recorded();
    for (const logger of [getLogger(), getLogger('tracing')]) {
      logger.debug('d');
      logger.info('i');
      logger.warn('w', { n: 1 });
      logger.error('e');
    }
    expect(records.map(({ logger, level }) => `${logger} ${level}`)).toEqual([
      'openai.agents warn',
      'openai.agents error',
      'openai.agents.tracing warn',
      'openai.agents.tracing error',
    ]);
    expect(records[0]).toEqual({ level: 'warn', logger: 'openai.agents', message: 'w', data: { n: 1 } });
  });

  test('the level and the sink can be changed later, for loggers that exist too [RUN-1901]', () => {
    const logger = getLogger();
    const records = recorded();
    configureLogging({ level: 'debug' });
    logger.debug('seen');
    configureLogging({ level: 'silent' });
    logger.error('not seen');
    expect(records.map(({ message }) => message)).toEqual(['seen']);
  });

  test("lines go to the runtime's console by default, and again with sink null [RUN-1901]", () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    getLogger().warn('first');
    configureLogging({ sink: () => {} });
    getLogger().warn('elsewhere');
    configureLogging({ sink: null });
    getLogger('tracing').warn('second', { n: 1 });
    expect(warn.mock.calls).toEqual([['[openai.agents] first'], ['[openai.agents.tracing] second', { n: 1 }]]);
  });

  test('content is not logged unless the environment or the program says so, each kind for itself [RUN-1901]', () => {
    expect(getLogger()).toMatchObject({ dontLogModelData: true, dontLogToolData: true });
    resetAll();
    vi.stubEnv('OPENAI_AGENTS_DONT_LOG_MODEL_DATA', '0');
    vi.stubEnv('OPENAI_AGENTS_DONT_LOG_TOOL_DATA', 'TRUE');
    expect(getLogger()).toMatchObject({ dontLogModelData: false, dontLogToolData: true });
    configureLogging({ dontLogToolData: false, dontLogModelData: true });
    expect(getLogger()).toMatchObject({ dontLogModelData: true, dontLogToolData: false });
  });

  test('a sink that throws or rejects fails nothing [RUN-1905]', async () => {
    configureLogging({
      sink: () => {
        throw new Error('disk full');
      },
    });
    expect(() => getLogger().error('e')).not.toThrow();
    // No mock: a mock would handle the rejection itself.
    let calls = 0;
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): number => unhandled.push(reason);
    process.on('unhandledRejection', listen);
    configureLogging({
      sink: (): unknown => {
        calls++;
        return Promise.reject(new Error('network'));
      },
    });
    getLogger().error('e');
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off('unhandledRejection', listen);
    expect(calls).toBe(1);
    expect(unhandled).toEqual([]);
  });

  test('unknown options and levels are refused', () => {
    expect(() => configureLogging({ lvl: 'debug' } as never)).toThrow(/Unknown option 'lvl' of configureLogging\(\)/);
    expect(() => configureLogging({ level: 'trace' as never })).toThrow(UserError);
  });

  test('the class of a value is told without calling its getters or toString [RUN-1905]', () => {
    const touched = vi.fn<() => string>(() => 'secret');
    class Odd extends Error {
      override get name() {
        return touched();
      }
      override get message() {
        return touched();
      }
      override toString = touched;
    }
    expect(className(new Odd())).toBe('Odd');
    const trap = { get: touched, getOwnPropertyDescriptor: () => undefined };
    expect(className(new Proxy({}, trap as never))).toBe('Object');
    expect([className(null), className('secret'), className(Object.create(null))]).toEqual([
      'null',
      'string',
      'object',
    ]);
    expect(touched).not.toHaveBeenCalled();
  });
});
