import { mergeConfig } from 'vitest/config';

import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('session-mongo'), {
  test: {
    globalSetup: ['./test/setup.mjs'],
    // As for tests and hooks: it catches what hangs, also on a machine that is busy with other things.
    expect: { poll: { timeout: 50_000 } },
  },
});
