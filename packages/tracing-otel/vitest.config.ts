import { mergeConfig } from 'vitest/config';
import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('tracing-otel'), { test: { globalSetup: ['./test/setup.mjs'] } });
