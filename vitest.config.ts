import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** Core's many short files come last: beside them the long ones of the others, each waiting for processes, fill no idle end. */
class LongProjectsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isCore = (file: TestSpecification): boolean => file.project.name === 'core';
    return [...sorted.filter((file) => !isCore(file)), ...sorted.filter(isCore)];
  }
}

export default defineConfig({
  test: {
    projects: ['packages/*', 'examples/*', 'scripts'],
    sequence: { sequencer: LongProjectsFirst },
    // What a test logs is told only when it fails.
    silent: 'passed-only',
  },
});
