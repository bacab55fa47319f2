import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    'openai/index': 'src/openai/index.ts',
    session: 'src/session.ts',
    tracing: 'src/tracing.ts',
    'testing/index': 'src/testing/index.ts',
  },
  format: 'esm',
  platform: 'neutral',
  target: 'es2023',
  dts: true,
  sourcemap: true,
  fixedExtension: false,
  // The bundled declarations lose the references of their sources; AsyncDisposable needs this one.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
});
