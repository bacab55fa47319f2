import { styleText } from 'node:util';

/** For a person at a terminal; plain where the output is none, or `NO_COLOR` is set. */
export function dim(text: string): string {
  return styleText('dim', text, { stream: process.stdout });
}

export function bold(text: string): string {
  return styleText('bold', text, { stream: process.stdout });
}

/** Text of a model or a tool without what could move the cursor or hide something from who approves it. */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{C}\n]/gu, '�');
}

/** The same on one line: a line of its own would look like something else that is asked about. */
export function oneLine(text: string): string {
  return printable(text).replaceAll('\n', '⏎');
}
