// The first process of the fixed conversation. It ends while a call waits for an approval.
import { takeTurn } from '../turn.ts';
import { inProcess, write } from './process.ts';

await inProcess('First process', async (desk) => {
  for (const message of ['What is the status of order 1042?', 'Please refund order 1042, it arrived broken.']) {
    write(`You: ${message}\n`);
    await takeTurn(desk, message, write);
  }
  const state = desk.folder.readRun();
  if (state === undefined) throw new Error('The refund should wait for an approval, but the run is over.');
  write(
    `The refund waits for an approval; the run is written to ${desk.folder.unfinishedRun} (${state.length} characters).\n`,
  );
});
