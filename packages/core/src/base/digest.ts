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

/** SHA-256 of the UTF-8 bytes of many texts, one after the other: nothing of them is kept. */
export interface RunningHash {
  update(text: string): void;
  /** 64 lower-case hex digits. The hash ends with it. */
  hex(): string;
}

export function runningSha256(): RunningHash {
  const native = globalThis.process?.getBuiltinModule?.('node:crypto')?.createHash('sha256');
  if (native !== undefined)
    return { update: (text) => void native.update(text, 'utf8'), hex: () => native.digest('hex') };
  return portableRunningSha256();
}

/** For runtimes without Node's crypto. */
export function portableRunningSha256(): RunningHash {
  const hash = sha256.create();
  const encoder = new TextEncoder();
  return { update: (text) => void hash.update(encoder.encode(text)), hex: () => hexOf(hash.digest()) };
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
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
  if (encoding === 'hex') return hexOf(bytes);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
};
