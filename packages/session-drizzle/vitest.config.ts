import { mergeConfig } from 'vitest/config';

import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('session-drizzle'), {
  test: {
    globalSetup: ['./test/setup.mjs'],
  },
});
