import type { FunctionTool } from '../../agent/tool.ts';
import { toolInternals } from '../../agent/tool-internals.ts';

interface Waiting {
  readonly tool: FunctionTool<never>;
  readonly start: () => void;
}

/**
 * Places for the calls of one pass: so many in all, and of a tool with a cap of its own no more than that. A free place goes
 * to the call that asked first among those that may take it; one that its own tool holds up holds up no other.
 */
export class Places {
  #free: number;
  readonly #running = new Map<FunctionTool<never>, number>();
  readonly #waiting: Waiting[] = [];

  constructor(limit: number | null | undefined) {
    this.#free = limit ?? Number.POSITIVE_INFINITY;
  }

  take(tool: FunctionTool<never>): Promise<void> | undefined {
    if (this.#occupy(tool)) return undefined;
    return new Promise((start) => {
      this.#waiting.push({ tool, start });
    });
  }

  give(tool: FunctionTool<never>): void {
    this.#free += 1;
    this.#running.set(tool, (this.#running.get(tool) ?? 1) - 1);
    const next = this.#waiting.findIndex((waiting) => this.#occupy(waiting.tool));
    if (next >= 0) this.#waiting.splice(next, 1)[0]?.start();
  }

  #occupy(tool: FunctionTool<never>): boolean {
    const running = this.#running.get(tool) ?? 0;
    if (this.#free === 0 || running >= (toolInternals(tool).maxConcurrency ?? Number.POSITIVE_INFINITY)) return false;
    this.#free -= 1;
    this.#running.set(tool, running + 1);
    return true;
  }
}
