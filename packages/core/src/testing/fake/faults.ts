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
      const isBreaking = fault.kind !== 'delay' && fault.kind !== 'slow';
      if (entry.left <= 0 || (isBreaking && breaking !== undefined) || !fits(fault, request)) continue;
      entry.seen += 1;
      if (fault.on?.nth !== undefined && entry.seen < fault.on.nth) continue;
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

/** How an interrupted socket reaches the client. */
export function socketError(message: string, code: string): TypeError {
  return new TypeError(message, {
    cause: Object.assign(new Error(code === 'ECONNREFUSED' ? 'connect ECONNREFUSED' : 'other side closed'), { code }),
  });
}
