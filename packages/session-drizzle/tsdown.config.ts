import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: { index: 'src/index.ts', pg: 'src/pg.ts', mysql: 'src/mysql.ts', sqlite: 'src/sqlite.ts' },
  format: 'esm',
  platform: 'neutral',
  target: 'es2023',
  dts: true,
  sourcemap: true,
  fixedExtension: false,
});
