import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Much of it waits for processes.
    maxWorkers: availableParallelism() + 1,
    projects: ['packages/*', 'examples/*', 'scripts'],
  },
});
