import { availableParallelism } from 'node:os';
import { defineProject } from 'vitest/config';
import type { UserWorkspaceConfig } from 'vitest/config';

/** What every package's vitest project has in common. Tests stand beside the file they test; packages resolve to their sources, so no build is needed. */
export const project: (name: string, options?: { typeTests?: boolean }) => UserWorkspaceConfig = (
  name,
  { typeTests = true } = {},
) =>
  defineProject({
    resolve: { conditions: ['source'] },
    ssr: { resolve: { conditions: ['source'] } },
    test: {
      name,
      // Files share a worker's modules: starting each anew took longer than most tests. A test that changes the process puts it back.
      isolate: false,
      // Said for each project: one that says nothing gets a processor less than there are, not what the workspace has. One more than there are, for much of it waits for processes.
      maxWorkers: availableParallelism() + 1,
      // Catches what hangs, also on a machine that is busy with other things.
      testTimeout: 60_000,
      hookTimeout: 60_000,
      include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
      typecheck: {
        enabled: typeTests,
        include: ['src/**/*.test-d.ts', 'test/**/*.test-d.ts'],
        tsconfig: './tsconfig.json',
      },
    },
  });
