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
  // The doc comments are in the declarations; what runs is read by machines, and its size counts at every import.
  outputOptions: { comments: false },
  fixedExtension: false,
  // The bundled declarations lose the references of their sources; AsyncDisposable needs this one.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
});
