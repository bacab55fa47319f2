import { mergeConfig } from 'vitest/config';

import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('session-mongo'), {
  test: {
    globalSetup: ['./test/setup.mjs'],
    // As for tests: they catch what hangs, also on a machine that is busy with other things.
    hookTimeout: 60_000,
    expect: { poll: { timeout: 50_000 } },
  },
});
