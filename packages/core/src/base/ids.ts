const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const POOL_BYTES = 4096;

let pool: Uint8Array<ArrayBuffer> | undefined;
let next = POOL_BYTES;

/**
 * `bytes` random bytes (1 to 64) as lower-case hex, from the platform's cryptographic source. The bytes come from a pool,
 * since a call of the source costs more than a hundred ids; the pool is made at the first call (some runtimes have no
 * randomness while modules load).
 */
export function randomHex(bytes: number): string {
  if (pool === undefined || next + bytes > POOL_BYTES) {
    pool ??= new Uint8Array(POOL_BYTES);
    globalThis.crypto.getRandomValues(pool);
    next = 0;
  }
  let hex = '';
  for (const end = next + bytes; next < end; next++) hex += HEX[pool[next] ?? 0];
  return hex;
}
