import type { Protocol } from './wire.ts';

/** Where a process that measures finds the address of a server. */
export const variableOf = (server: Protocol): string => `BENCH_${server.toUpperCase()}_URL`;

export function serverUrl(server: Protocol): string {
  const url = process.env[variableOf(server)];
  if (url === undefined) throw new Error(`${variableOf(server)} is not set.`);
  return url;
}
