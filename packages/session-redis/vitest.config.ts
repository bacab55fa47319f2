import { mergeConfig } from 'vitest/config';
import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('session-redis'), {
  test: {
    globalSetup: ['./test/setup.mjs'],
  },
});
