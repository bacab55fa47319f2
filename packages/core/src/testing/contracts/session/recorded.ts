import type { Session } from '../../../sessions/contract.ts';

/** What reaches a session: batches as they are offered, reads with their limits, and the contexts that came along. */
export interface Recorded {
  readonly session: Session;
  readonly writes: (readonly object[])[];
  readonly reads: (number | undefined)[];
  /** Last arguments of calls of a session that takes the run's context. */
  readonly contexts: unknown[];
}

export interface RecordOptions {
  /** Without capabilities: four methods, as other people's sessions are. */
  readonly plain?: boolean;
  readonly acceptsRunContext?: boolean;
  /** Called in each append, with the number of those before; what it throws is the append's failure. */
  readonly onAppend?: (count: number, store: () => Promise<void>) => Promise<void>;
}

/** The session behind a recorder. */
export function recorded(inner: Session<object>, options: RecordOptions = {}): Recorded {
  const session = inner as Session;
  const record: Omit<Recorded, 'session'> = { writes: [], reads: [], contexts: [] };
  const append = async (
    items: readonly object[],
    context: readonly unknown[],
    store: () => Promise<void>,
  ): Promise<void> => {
    record.writes.push(items);
    record.contexts.push(...context);
    await (options.onAppend?.(record.writes.length - 1, store) ?? store());
  };
  const recorder: Record<string, unknown> = {
    sessionId: session.sessionId,
    sessionSettings: session.sessionSettings,
    async getItems(...args: [number?, unknown?]) {
      record.reads.push(args[0]);
      record.contexts.push(...args.slice(1));
      return args[0] === undefined ? await session.getItems() : await session.getItems(args[0]);
    },
    addItems: (items: readonly object[], ...context: unknown[]) =>
      append(items, context, () => session.addItems(items as never)),
    popItem: () => session.popItem(),
    clearSession: () => session.clearSession(),
  };
  if (options.acceptsRunContext === true) recorder['acceptsRunContext'] = true;
  const apply = (session as { applyHistoryTransaction?: unknown }).applyHistoryTransaction;
  if (typeof apply === 'function' && options.plain !== true) {
    recorder['applyHistoryTransaction'] = (
      operation: { transaction: { items: readonly object[] } },
      ...context: unknown[]
    ) =>
      append(operation.transaction.items, context, async () => void (await Reflect.apply(apply, session, [operation])));
  }
  return { session: recorder as unknown as Session, ...record };
}

/** A list of items in the words of the specification: `u fc fco m`. */
export function kindsOf(items: readonly object[]): string {
  return items
    .map((item) => {
      const { type, role } = item as { type?: string; role?: string };
      if (type === 'function_call') return 'fc';
      if (type === 'function_call_output') return 'fco';
      if (type === 'reasoning') return 'rs';
      return role === 'user' ? 'u' : 'm';
    })
    .join(' ');
}
