import { UserError } from '../base/errors.ts';

/**
 * Checks the URL of a store and gives it back. What it says stays with the caller: credentials may be in it.
 *
 * @throws UserError that names the schemes and nothing of the URL
 * @example checkStoreUrl(url, ['redis', 'rediss'], 'RedisSessionStore.open()')
 */
export function checkStoreUrl(url: unknown, schemes: readonly string[], where: string): string {
  if (typeof url === 'string') {
    const scheme = schemes.find((name) => url.slice(0, name.length + 1).toLowerCase() === `${name}:`);
    if (scheme !== undefined && url.length > scheme.length + 1 && !/\p{Cc}/u.test(url)) return url;
  }
  throw new UserError(`${where} takes a URL that begins with ${schemes.map((name) => `${name}:`).join(' or ')}.`);
}
