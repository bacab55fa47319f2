import { mergeConfig } from 'vitest/config';

import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('example-redis-sessions', { typeTests: false }), {
  test: { globalSetup: ['./test/setup.mjs'] },
});
