import type { Cluster, Redis } from 'ioredis';

import { isAnswer } from './connection.ts';

/** What an operator should know of the settings of each server (SESS-231). */
export async function adviceFor(client: Redis | Cluster): Promise<string[]> {
  const servers = client.isCluster ? (client as Cluster).nodes('master') : [client as Redis];
  const advice = await Promise.all(
    servers.map(async (server) => {
      const about = servers.length > 1 ? ` (${server.options.host}:${server.options.port})` : '';
      return (await adviceOf(server)).map((text) => text + about);
    }),
  );
  return advice.flat();
}

async function adviceOf(server: Redis): Promise<string[]> {
  const settings = new Map<string, string>();
  try {
    for (const name of ['maxmemory', 'maxmemory-policy', 'appendonly', 'appendfsync', 'save']) {
      const answer = await server.call('CONFIG', 'GET', name);
      // A client that gives the shapes of RESP3 has an object.
      const [value = ''] = Array.isArray(answer) ? answer.slice(1) : Object.values(answer as object);
      settings.set(name, String(value));
    }
  } catch (error) {
    if (!isWithheld(error)) throw error;
    return [
      'The settings cannot be read (CONFIG GET): see to it that maxmemory-policy is noeviction and that there is persistence.',
    ];
  }
  const advice: string[] = [];
  const policy = settings.get('maxmemory-policy');
  if (policy !== 'noeviction')
    advice.push(
      `maxmemory-policy is ${policy} (maxmemory ${settings.get('maxmemory')}): a full server drops keys of sessions. Set noeviction.`,
    );
  if (settings.get('appendonly') !== 'yes')
    advice.push(
      `appendonly is no${settings.get('save') ? ` (save ${settings.get('save')})` : ' and save is off'}: a crash loses acknowledged writes. Set appendonly yes.`,
    );
  else if (settings.get('appendfsync') !== 'always')
    advice.push(
      `appendfsync is ${settings.get('appendfsync')}: a crash of the machine may lose the last writes. always loses none.`,
    );
  return advice;
}

/** This user may not ask, or the service does not have the command. All else says nothing of settings: no connection, a wrong login. */
function isWithheld(error: unknown): boolean {
  return isAnswer(error) && /^(NOPERM|ERR) /.test(error.message);
}
