import { startProcess } from '@agents/testkit';
import type { FaultOperation, FaultSubject } from '@agents/testkit';

import { MongoDBSession } from '../../src/index.ts';
import { commandOn, quick } from '../mongo.ts';
import { Rig } from './rig.ts';
import type { Topology } from './rig.ts';

const script = new URL('change.ts', import.meta.url);

type Matcher = (request: Buffer) => boolean;

const reservation = commandOn('findAndModify', 'agent_sessions');
const insertion = commandOn('insert', 'agent_messages');
const exchange: Matcher = (request) =>
  commandOn('update', 'agent_sessions')(request) && request.includes('_operations\0');
const newGeneration: Matcher = (request) => reservation(request) && request.includes('$unset\0');

/** The request by which a change counts, and another one that it takes. */
const requests: Record<FaultOperation, readonly [Matcher, Matcher]> = {
  append: [insertion, reservation],
  appendIfVersion: [insertion, reservation],
  replace: [exchange, insertion],
  pop: [commandOn('findAndModify', 'agent_messages'), commandOn('update', 'agent_sessions')],
  clear: [newGeneration, commandOn('delete', 'agent_messages')],
};

/** @param tries of a change by the driver, all of which are cut: two, where it sends again */
export async function startSubject(
  topology: Topology,
  tries = 1,
): Promise<FaultSubject & { readonly rig: Rig; stop(): Promise<void> }> {
  const rig = await Rig.start(topology);
  // Made before anything is cut.
  await new MongoDBSession<object>('warm', { client: rig.direct }).addItems([{ n: '1' }]);
  return {
    rig,
    proxy: rig.proxy,
    tries,
    isWrite(request, operation, round) {
      const [counts, another] = requests[operation];
      return (tries === 1 && round % 3 === 2 ? another : counts)(request);
    },
    open: (id) => new MongoDBSession(id, { client: rig.client, createIndexes: false }),
    // Its client outlives no fault either.
    direct: (id) => new MongoDBSession(id, { url: rig.directUrl, clientOptions: quick, createIndexes: false }),
    restart: () => rig.restart(),
    process(id, operation) {
      const child = startProcess(script, rig.url, id, operation);
      return { kill: () => void child.process.kill('SIGKILL'), ended: child.ended };
    },
    async settled() {
      rig.proxy.disarm();
      // What a process sent before it died may still be on its way.
      await rig.direct.db('admin').command({ ping: 1 });
    },
    stop: () => rig.stop(),
  };
}
