// A run that streams to a web page: text as it is written, calls of tools, a button that stops the run. The run belongs to
// the server: a page that is reloaded, or loses its connection, goes on where it was.
import { parseArgs } from 'node:util';
import { deskAgent } from './agent.ts';
import { createDeskServer } from './server.ts';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8080' } } });

if (!process.env['OPENAI_API_KEY'])
  console.log(
    'Without OPENAI_API_KEY: the offline model picks tools by your words. Set the key (and OPENAI_BASE_URL) for a real model.',
  );

const server = createDeskServer(deskAgent());
server.on('error', (error) => {
  console.error(error.message);
  process.exitCode = 1;
});
// Nobody but this machine: who can reach the page can spend your money.
server.listen(Number(values.port), '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port} – try: Where is order 1042?`);
});
