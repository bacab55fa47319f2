import type { SessionCase } from './scene.ts';

export const runs: readonly SessionCase[] = [];
