import { statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** What importing a package for the first time loads: modules, their KiB, packages beside its own. */
export async function footprint(name: string): Promise<number[]> {
  const files: string[] = [];
  const hooks = registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) files.push(fileURLToPath(url));
      return next(url, context);
    },
  });
  await import(name);
  hooks.deregister();
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
  return [files.length, bytes / 1024, new Set(files.map(packageOf)).size - 1];
}

/** The folder of the package that a file belongs to. */
function packageOf(file: string): string {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+|^.*\/packages\/[^/]+/u.exec(file)?.[0] ?? file;
}
