import { mergeConfig } from 'vitest/config';

import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('drizzle-sessions', { typeTests: false }), {
  test: { globalSetup: ['./test/setup.mjs'] },
});
