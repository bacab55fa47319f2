import { UserError } from '../../base/errors.ts';
import { checkObject, checkOptions, kinds } from '../../base/options.ts';
import type { Check } from '../../base/options.ts';
import type { Fault, RecordedRequest } from './types.ts';

type Kind<K extends Fault['kind']> = Extract<Fault, { kind: K }>;
/** Faults of one request: waits add up, of the others the first one counts. */
export interface RequestFaults {
  readonly delayMs: number;
  readonly slowMs: number;
  readonly breaking: Exclude<Fault, Kind<'delay' | 'slow'>> | undefined;
}

interface Injected {
  readonly fault: Fault;
  seen: number;
  left: number;
}

/** What was injected and is not used up, in order. */
export class FaultList {
  #list: Injected[] = [];

  add(fault: Fault): () => void {
    const entry = { fault, seen: 0, left: fault.times ?? 1 };
    this.#list.push(entry);
    return () => {
      this.#list = this.#list.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#list = [];
  }

  take(request: RecordedRequest): RequestFaults {
    let delayMs = 0;
    let slowMs = 0;
    let breaking: RequestFaults['breaking'];
    for (const entry of this.#list) {
      const { fault } = entry;
      if (entry.left <= 0 || !fits(fault, request)) continue;
      entry.seen += 1;
      if (fault.on?.nth !== undefined && entry.seen < fault.on.nth) continue;
      const isBreaking = fault.kind !== 'delay' && fault.kind !== 'slow';
      if (isBreaking && breaking !== undefined) continue;
      entry.left -= 1;
      if (fault.kind === 'delay') delayMs += fault.ms;
      else if (fault.kind === 'slow') slowMs += fault.ms;
      else breaking = fault as RequestFaults['breaking'];
    }
    return { delayMs, slowMs, breaking };
  }
}

function fits({ on }: Fault, request: RecordedRequest): boolean {
  if (on?.method !== undefined && on.method.toUpperCase() !== request.method) return false;
  if (on?.path === undefined) return true;
  return typeof on.path === 'string' ? on.path === request.path : on.path.test(request.path);
}

const common = {
  kind: kinds.any,
  on: kinds.object,
  times: (value) => (value === Infinity ? undefined : kinds.integer(1)(value)),
} as const satisfies Readonly<Record<string, Check>>;
const afterEvents = kinds.integer(0);
const members: { readonly [K in Fault['kind']]: Readonly<Record<string, Check>> } = {
  status: { status: kinds.integer(100), headers: kinds.object, body: kinds.any },
  refuse: {},
  hang: {},
  html: {},
  delay: { ms: kinds.number },
  slow: { ms: kinds.number },
  cut: { afterEvents },
  truncate: { afterEvents },
  malformed: { afterEvents },
  errorEvent: { code: kinds.string, shape: kinds.oneOf('flat', 'nested'), afterEvents },
  terminal: { status: kinds.oneOf('failed', 'incomplete'), details: kinds.object },
};
const required: Readonly<Record<string, readonly string[]>> = {
  status: ['status'],
  delay: ['ms'],
  slow: ['ms'],
  errorEvent: ['code'],
  terminal: ['status'],
};

/** A fault that nothing comes of makes a test pass that should not. @throws UserError */
export function checkFault(fault: Fault): void {
  const where = 'FakeOpenAI.inject()';
  checkObject(fault, where);
  const { kind } = fault;
  checkOptions({ kind }, { kind: kinds.oneOf(...Object.keys(members)) }, where);
  if (kind === undefined)
    throw new UserError(`${where} needs the 'kind' of the fault: ${Object.keys(members).join(', ')}.`);
  checkOptions(fault, { ...common, ...members[kind] }, where);
  const missing = required[kind]?.find((name) => (fault as Record<string, unknown>)[name] === undefined);
  if (missing !== undefined) throw new UserError(`${where}: a fault of the kind '${kind}' needs '${missing}'.`);
  const path: Check = kinds.either(kinds.string, (value) => (value instanceof RegExp ? undefined : 'a RegExp'));
  checkOptions(fault.on, { method: kinds.string, path, nth: kinds.integer(1) }, `${where}, on`);
}

/** How an interrupted socket reaches the client. */
export function socketError(message: string, code: string): TypeError {
  return new TypeError(message, {
    cause: Object.assign(new Error(code === 'ECONNREFUSED' ? 'connect ECONNREFUSED' : 'other side closed'), { code }),
  });
}
