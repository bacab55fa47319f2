import { mergeConfig } from 'vitest/config';
import { project } from '../../vitest.shared.ts';

// Tests start processes, several one after the other.
export default mergeConfig(project('support-desk', { typeTests: false }), { test: { testTimeout: 60_000 } });
