import { openDesk } from '../desk.ts';
import type { Desk } from '../desk.ts';
import { explain } from '../explain.ts';
import { chooseModel } from '../model.ts';
import { bold } from '../text.ts';

/** One of the two processes: opens the desk of the folder that it was given, does its part, and says what went wrong. */
export async function inProcess(title: string, part: (desk: Desk) => Promise<void>): Promise<void> {
  try {
    const [, , folder] = process.argv;
    if (folder === undefined) throw new Error('Which folder? This file is started by play.ts.');
    write(`\n${bold(`${title} (pid ${process.pid})`)}\n`);
    await using desk = await openDesk(folder, await chooseModel(process.env, () => undefined));
    await part(desk);
  } catch (error) {
    process.stderr.write(`${explain(error)}\n`);
    process.exitCode = 1;
  }
}

export function write(text: string): void {
  process.stdout.write(text);
}
