/**
 * An environment variable as it stands there, `undefined` where it, the permission to read it or the whole environment
 * is missing. Nothing is read when a module is imported, and nothing is cached here.
 */
export function env(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name];
  } catch {
    // Deno without --allow-env throws.
    return undefined;
  }
}

/**
 * A flag: its value in lower case is one of `truthy`; `unset` when the variable is missing.
 */
export function envFlag(name: string, unset: boolean, truthy: readonly string[] = ['true', '1']): boolean {
  const value = env(name);
  return value === undefined ? unset : truthy.includes(value.toLowerCase());
}
