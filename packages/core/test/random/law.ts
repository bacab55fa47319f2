import type { Call, Script } from './script.ts';
import type { Decision, ToolApprovalItem } from '../../src/index.ts';

/** What was seen that must not be. */
export class Broken extends Error {}

interface Row {
  readonly call: Call;
  starts: number;
  decided: 'approve' | 'reject' | undefined;
  /** It may have been acted on before another decision came. */
  wasRejected: boolean;
  /** Answers to the call in doubt that nothing has acted on yet. */
  reruns: number;
  done: boolean;
}

/** The model of the calls: who allowed what, and what therefore may begin and may have come of it. */
export class Law {
  readonly #rows: ReadonlyMap<string, Row>;
  /** Decisions that hold for later calls of a tool. */
  readonly #standing = new Map<string, 'approve' | 'reject'>();
  /** The segment that goes on runs calls in doubt again. */
  retries = false;
  readonly broken: string[] = [];

  constructor(script: Script) {
    this.#rows = new Map(
      script
        .flat()
        .map((call) => [call.id, { call, starts: 0, decided: undefined, wasRejected: false, reruns: 0, done: false }]),
    );
  }

  row(id: string): Row {
    const row = this.#rows.get(id);
    if (row === undefined) throw new Broken(`A call ${id} that nobody made.`);
    return row;
  }

  /** A body begins. Returns the attempt. */
  start(id: string): number {
    const row = this.row(id);
    const { call } = row;
    const verdict = row.decided ?? this.#standing.get(call.tool);
    row.starts += 1;
    if (row.starts > 1) {
      if (row.reruns > 0) row.reruns -= 1;
      else if (!this.retries) this.broken.push(`${id} begins again, and nobody said so`);
    } else if (call.gated && verdict !== 'approve' && row.reruns === 0)
      this.broken.push(`${id} begins without an approval`);
    if (row.decided === 'reject') this.broken.push(`${id} begins after it was rejected`);
    if (row.done) this.broken.push(`${id} begins after somebody gave its output`);
    if (call.malformed) this.broken.push(`${id} begins with arguments that are none`);
    return row.starts;
  }

  decide(item: ToolApprovalItem, decision: Decision): void {
    const row = this.row(item.callId ?? '');
    // Until something acts on it, a decision may be changed: the last one counts.
    row.reruns = 0;
    row.done = false;
    if (row.decided === 'reject') row.decided = undefined;
    switch (decision.type) {
      case 'approve':
      case 'reject':
        // What was said about other calls stands (STATE-163).
        if (decision.always) this.#standing.set(row.call.tool, decision.type);
        row.decided = decision.type;
        row.wasRejected ||= decision.type === 'reject';
        return;
      case 'rerun':
        row.reruns = 1;
        return;
      case 'done':
        row.done = true;
        return;
      default:
        decision satisfies never;
    }
  }

  /** Whether `output` may be what came of the call. */
  checkOutput(id: string, output: unknown): void {
    const row = this.row(id);
    if (!this.#possible(row, String(output)))
      this.broken.push(`${id} has the output ${JSON.stringify(output)}: ${JSON.stringify(row)}`);
  }

  #possible(row: Row, output: string): boolean {
    const { call, starts, decided, done } = row;
    const rejected = decided === 'reject' || (decided === undefined && this.#standing.get(call.tool) === 'reject');
    const late = starts > 0 && this.#standing.get(call.tool) === 'reject';
    if (output === 'Tool execution was not approved.' || output === 'no') return rejected || late || row.wasRejected;
    if (output === 'given') return done;
    if (call.tool === 'unknown') return output.includes('unknown');
    if (call.malformed) return starts === 0 && (output.startsWith('failed') || output.includes('arguments'));
    if (starts === 0) return false;
    if (output === `${call.id} ok`) return call.body !== 'fails' || starts > 1;
    if (output.startsWith('failed')) return call.body === 'fails' || call.body === 'heeds' || call.body === 'hangs';
    return output.includes('timed out') && (call.policy === 'limit' || call.policy === 'limit_throw');
  }
}
