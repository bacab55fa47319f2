import { mergeConfig } from 'vitest/config';
import { project } from '../vitest.shared.ts';

export default mergeConfig(project('scripts', { typeTests: false }), { test: { include: ['**/*.test.mjs'] } });
