// The server as a process: node main.ts --port 27017 [--folder data] [--replica-set rs] [--announce host:port]
import { parseArgs } from 'node:util';

import { MongoServer } from './server.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { port: text, folder: text, 'replica-set': text, announce: text } });
const { port, folder, announce } = values;
const server = await MongoServer.start({
  port: port === undefined ? undefined : Number(port),
  folder,
  announce,
  replicaSet: values['replica-set'],
});
process.stdout.write(`${server.url}\n`);
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)));
