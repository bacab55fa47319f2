import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    'extensions/index': 'src/extensions/index.ts',
    'node/index': 'src/node/index.ts',
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
  outputOptions: {
    comments: false,
    // What the root needs is three files and not a dozen: finding and linking each costs about half a millisecond. What `/tracing`
    // and `/session` need of it are two of them, so that these load no more.
    codeSplitting: {
      groups: [
        { name: 'tracing', test: /src\/tracing\/(?!batch|console|tree)[\w-]+\.ts$/, priority: 3 },
        { name: 'session', test: /src\/sessions\/(?:contract|memory)\.ts$/, priority: 2 },
        { name: 'root', test: /src\/index\.ts$/, priority: 1 },
      ],
    },
    chunkFileNames: ({ moduleIds }) => `${layerOf(moduleIds)}-[hash].js`,
  },
  fixedExtension: false,
  // The bundled declarations lose the references of their sources; AsyncDisposable needs this one.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
});

/** What entries share is named after the layer that most of it comes from: stack traces point there. */
function layerOf(moduleIds: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const id of moduleIds) {
    const layer = /\/src\/(\w+)\//.exec(id)?.[1];
    if (layer !== undefined) counts.set(layer, (counts.get(layer) ?? 0) + 1);
  }
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? 'shared';
}
