import { UserError } from '../base/errors.ts';

/*
 * Fernet (https://github.com/fernet/spec): 0x80, eight bytes of seconds, an IV, AES-128-CBC, a tag of HMAC-SHA-256; in
 * URL-safe base64 with padding. The key of a session is HKDF-SHA-256 of a master with the session's id as salt (SESS-281).
 */
const VERSION = 0x80;
const IV_AT = 9;
const TEXT_AT = 25;
const TAG_BYTES = 32;
const BLOCK = 16;
const INFO = 'agents.session-store.hkdf.v1';

const utf8 = new TextEncoder();
type Bytes = Uint8Array<ArrayBuffer>;
type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

export interface FernetKey {
  readonly sign: Key;
  readonly encrypt: Key;
}

/** What a key says of a token that it signed. */
export interface OpenToken {
  readonly text: string;
  /** Unix time at which it was made. */
  readonly seconds: number;
}

/** @throws UserError where the runtime has no WebCrypto */
export async function sessionKey(master: Bytes, sessionId: string): Promise<FernetKey> {
  const { subtle } = webCrypto();
  const input = await subtle.importKey('raw', master, 'HKDF', false, ['deriveBits']);
  const derivation = { name: 'HKDF', hash: 'SHA-256', salt: utf8.encode(sessionId), info: utf8.encode(INFO) };
  const bits = new Uint8Array(await subtle.deriveBits(derivation, input, 256));
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const [sign, encrypt] = await Promise.all([
    subtle.importKey('raw', bits.slice(0, 16), hmac, false, ['sign', 'verify']),
    subtle.importKey('raw', bits.slice(16), 'AES-CBC', false, ['encrypt', 'decrypt']),
  ]);
  return { sign, encrypt };
}

/** @param iv of 16 bytes; drawn when it is not given */
export async function seal(key: FernetKey, text: string, nowMs: number, iv?: Bytes): Promise<string> {
  const { subtle } = webCrypto();
  const vector = iv ?? crypto.getRandomValues(new Uint8Array(BLOCK));
  const cipher = await subtle.encrypt({ name: 'AES-CBC', iv: vector }, key.encrypt, utf8.encode(text));
  const token = new Uint8Array(TEXT_AT + cipher.byteLength + TAG_BYTES);
  token[0] = VERSION;
  new DataView(token.buffer).setBigUint64(1, BigInt(Math.floor(nowMs / 1000)));
  token.set(vector, IV_AT);
  token.set(new Uint8Array(cipher), TEXT_AT);
  const signed = token.subarray(0, token.length - TAG_BYTES);
  token.set(new Uint8Array(await subtle.sign('HMAC', key.sign, signed)), signed.length);
  return toBase64Url(token);
}

/** The first of the keys that signed the token opens it. `undefined`: none of them did. The tag comes first, in constant time. */
export async function open(keys: readonly FernetKey[], token: unknown): Promise<OpenToken | undefined> {
  const bytes = typeof token === 'string' ? fromBase64Url(token) : undefined;
  const cipherBytes = (bytes?.length ?? 0) - TEXT_AT - TAG_BYTES;
  if (bytes === undefined || bytes[0] !== VERSION || cipherBytes < BLOCK || cipherBytes % BLOCK !== 0) return undefined;
  const signed = bytes.subarray(0, TEXT_AT + cipherBytes);
  const tag = bytes.subarray(signed.length);
  const { subtle } = webCrypto();
  for (const key of keys) {
    if (!(await subtle.verify('HMAC', key.sign, tag, signed))) continue;
    const iv = bytes.subarray(IV_AT, TEXT_AT);
    try {
      const plain = await subtle.decrypt({ name: 'AES-CBC', iv }, key.encrypt, bytes.subarray(TEXT_AT, signed.length));
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(plain);
      return { text, seconds: Number(new DataView(bytes.buffer).getBigUint64(1)) };
    } catch {
      // Signed by this key and yet no text: not what we or Python write.
      return undefined;
    }
  }
  return undefined;
}

/**
 * Bytes of a master key as the Python SDK reads it: 32 bytes of URL-safe base64, else the text itself (SESS-282). The
 * base64 is read as leniently as there: other characters are passed over, what follows the padding too.
 */
export function masterBytes(key: string): Bytes {
  const decoded = lenientBase64(key);
  return decoded?.length === 32 ? decoded : utf8.encode(key);
}

function lenientBase64(text: string): Bytes | undefined {
  // Python refuses strings that are not ASCII here.
  if (/[^\0-\x7f]/.test(text)) return undefined;
  const bytes: number[] = [];
  let place = 0;
  let left = 0;
  let pads = 0;
  for (const char of text) {
    if (char === '=') {
      pads++;
      if (place >= 2 && place + pads >= 4) return Uint8Array.from(bytes);
      continue;
    }
    const value = ALPHABET.indexOf(char === '-' ? '+' : char === '_' ? '/' : char);
    if (value < 0) continue;
    pads = 0;
    if (place > 0) bytes.push(((left << (2 * place)) | (value >> (6 - 2 * place))) & 0xff);
    left = value;
    place = (place + 1) % 4;
  }
  return place === 0 ? Uint8Array.from(bytes) : undefined;
}
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

function toBase64Url(bytes: Bytes): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_');
}

function fromBase64Url(text: string): Bytes | undefined {
  if (!/^[A-Za-z0-9_-]+={0,2}$/.test(text) || text.length % 4 !== 0) return undefined;
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

function webCrypto(): Pick<typeof crypto, 'subtle'> {
  const given = globalThis.crypto as Partial<typeof crypto> | undefined;
  if (given?.subtle === undefined)
    throw new UserError(
      'EncryptedSession needs WebCrypto (crypto.subtle), which this runtime does not have; browsers have it in secure contexts only.',
    );
  return { subtle: given.subtle };
}
