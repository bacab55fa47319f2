import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Calls `use` with a folder that has this one's files as JavaScript: what strips types in a process takes 17 MiB of it, and
 * no program that is measured here does that.
 */
export async function withJavaScript<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const source = fileURLToPath(new URL('.', import.meta.url));
  // Where packages are found, and no tool looks.
  const folder = mkdtempSync(fileURLToPath(new URL('../node_modules/.measured-', import.meta.url)));
  try {
    for (const file of globSync('**/*.ts', { cwd: source })) {
      const target = join(folder, file.replace(/\.ts$/u, '.js'));
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, toJavaScript(readFileSync(join(source, file), 'utf8')));
    }
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function toJavaScript(text: string): string {
  return stripTypeScriptTypes(text).replaceAll(/'(\.{1,2}\/[^']+)\.ts'/gu, "'$1.js'");
}
