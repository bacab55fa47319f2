const POOL_BYTES = 4096;

/** The digits of each byte. Made with the pool, not at each import of the package. */
let digits: readonly string[] = [];
let pool: Uint8Array<ArrayBuffer> | undefined;
let next = POOL_BYTES;

/**
 * `bytes` random bytes (1 to 64) as lower-case hex, from the platform's cryptographic source. The bytes come from a pool,
 * since a call of the source costs more than a hundred ids; the pool is made at the first call (some runtimes have no
 * randomness while modules load).
 */
export function randomHex(bytes: number): string {
  if (pool === undefined || next + bytes > POOL_BYTES) {
    if (pool === undefined) {
      pool = new Uint8Array(POOL_BYTES);
      digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
    }
    globalThis.crypto.getRandomValues(pool);
    next = 0;
  }
  let hex = '';
  for (const end = next + bytes; next < end; next++) hex += digits[pool[next] ?? 0];
  return hex;
}
