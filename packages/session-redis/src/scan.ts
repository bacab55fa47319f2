import type { SessionInfo, SessionPage, SessionPageResult } from '@agents/core/session';
import type { Cluster, Redis } from 'ioredis';

import type { Connection } from './connection.ts';
import type { StoreIndex } from './index-key.ts';
import { infoOf, notOurs } from './info.ts';
import { isTagged, keysOf } from './keys.ts';
import type { KeyNaming } from './keys.ts';
import type { Config } from './options.ts';

/** Keys that one command of the scan looks at. */
const COUNT = 200;

/**
 * A part of what a scan finds: `after` is `['scan', node, cursor, …ids that the page before had no place for]`. A session
 * that is written to meanwhile may come twice, one that is there all the time is never left out.
 */
export async function scanPage(
  connection: Connection,
  config: Config,
  { after = [], limit, prefix = '', withCount }: SessionPage,
  index: StoreIndex | undefined,
): Promise<SessionPageResult> {
  const [, node = 0, from = '0', ...left] = after;
  let place = { node: Number(node), cursor: String(from) };
  let ids = left.map(String);
  return await connection.use(async (client) => {
    if (ids.length === 0) {
      const masters = mastersOf(client);
      const master = masters[place.node];
      if (master === undefined) return { sessions: [] };
      const found = await scan(master, place.cursor, pattern(config.keys, prefix));
      ids = found.keys.flatMap((key) => idOf(key, config.keys) ?? []);
      place = found.cursor === '0' ? { node: place.node + 1, cursor: '0' } : { ...place, cursor: found.cursor };
      if (place.node >= masters.length) place.node = -1;
    }
    const now = ids.slice(0, limit);
    // What the index has was listed before: nothing more is asked about it.
    const indexed = await index?.has(now);
    const infos = await Promise.all(
      now
        .filter((_, at) => indexed?.[at] !== true)
        .map((id) => infoOf(client, keysOf(id, config.keys), withCount).catch(notOurs)),
    );
    const sessions = infos.filter((info): info is SessionInfo => info !== undefined);
    const rest = ids.slice(limit);
    const isEnd = rest.length === 0 && place.node === -1;
    return isEnd ? { sessions } : { sessions, next: ['scan', place.node, place.cursor, ...rest] };
  });
}

async function scan(client: Redis, cursor: string, match: string): Promise<{ cursor: string; keys: string[] }> {
  const [next, keys] = await client.scan(cursor, 'MATCH', match, 'COUNT', COUNT, 'TYPE', 'hash');
  return { cursor: next, keys };
}

/** Those that keys are divided among, in an order that stays. */
function mastersOf(client: Redis | Cluster): Redis[] {
  if (!client.isCluster) return [client as Redis];
  const name = ({ options: { host = '', port = 0 } }: Redis): string => `${host}:${port}`;
  return (client as Cluster).nodes('master').toSorted((a, b) => (name(a) < name(b) ? -1 : 1));
}

/** A scan gets and gives keys as the server has them, with the client's prefix. */
function pattern({ clientPrefix, prefix, ...naming }: KeyNaming, idPrefix: string): string {
  const tag = isTagged({ clientPrefix, prefix, ...naming }) ? '{' : '';
  return `${escapePattern(`${clientPrefix}${prefix}:${tag}${idPrefix}`)}*`;
}

function escapePattern(text: string): string {
  return text.replaceAll(/[*?[\]\\]/g, String.raw`\$&`);
}

/** `undefined`: the key belongs to something else. */
function idOf(key: string, naming: KeyNaming): string | undefined {
  const rest = key.slice(naming.clientPrefix.length + naming.prefix.length + 1);
  const tagged = isTagged(naming);
  if (tagged && !(rest.startsWith('{') && rest.endsWith('}'))) return undefined;
  const id = tagged ? rest.slice(1, -1) : rest;
  try {
    return keysOf(id, naming) && id !== '' ? id : undefined;
  } catch {
    return undefined;
  }
}
