import { sha256 } from '@noble/hashes/sha2.js';

type Encoding = 'hex' | 'base64url';
type Hash = (text: string, encoding: Encoding) => string;

let hash: Hash | undefined;

/** SHA-256 of the UTF-8 bytes of `text`, 64 lower-case hex digits. */
export function sha256Hex(text: string): string {
  hash ??= nativeHash() ?? portableHash;
  return hash(text, 'hex');
}

/** SHA-256 of the UTF-8 bytes of `text`, 43 characters of base64url without padding. */
export function sha256Base64Url(text: string): string {
  hash ??= nativeHash() ?? portableHash;
  return hash(text, 'base64url');
}

/** Node's own hash where the runtime has it: synchronous, and a hundred times cheaper per call than WebCrypto. */
function nativeHash(): Hash | undefined {
  try {
    const crypto = globalThis.process?.getBuiltinModule?.('node:crypto');
    if (crypto === undefined) return undefined;
    if (typeof crypto.hash === 'function') return (text, encoding) => crypto.hash('sha256', text, encoding);
    return (text, encoding) => crypto.createHash('sha256').update(text, 'utf8').digest(encoding);
  } catch {
    return undefined;
  }
}

/** For runtimes without Node's crypto. */
export const portableHash: Hash = (text, encoding) => {
  const bytes = sha256(new TextEncoder().encode(text));
  if (encoding === 'hex') return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
};
