// Counts the tests of a vitest run for scripts/test.mjs, and how long the files of each project took: a file that could not
// be run and an error outside of any test count as failures.
import { writeFileSync } from 'node:fs';

export default class CountReporter {
  onTestRunEnd(modules, errors) {
    const counts = { passed: 0, failed: errors.length, skipped: 0, times: {} };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      const { name } = module.project;
      counts.times[name] = (counts.times[name] ?? 0) + module.diagnostic().duration;
      for (const test of tests) {
        const { state } = test.result();
        counts[state === 'passed' || state === 'failed' ? state : 'skipped']++;
      }
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) counts.failed++;
    }
    if (process.env.TEST_COUNTS) writeFileSync(process.env.TEST_COUNTS, JSON.stringify(counts));
  }
}
