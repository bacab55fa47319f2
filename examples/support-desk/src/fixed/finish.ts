// The second process of the fixed conversation. All that it has of the run is the file.
import { unfinishedRun } from '../desk.ts';
import { takeTurn } from '../turn.ts';
import { inProcess, write } from './process.ts';

await inProcess('Second process', async (desk) => {
  const state = await unfinishedRun(desk);
  if (state === undefined) throw new Error(`There is no run in ${desk.folder.unfinishedRun}.`);
  for (const item of state.interruptions) {
    write(`Approved: ${item.name} ${item.arguments}\n`);
    state.approve(item, { by: 'the second process' });
  }
  const status = await takeTurn(desk, state, write);
  if (status !== 'completed') throw new Error('The run should be over after the approval.');
});
