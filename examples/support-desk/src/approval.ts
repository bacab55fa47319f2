import type { RunState, ToolApprovalItem } from '@agents/core';
import type { Terminal } from './terminal.ts';
import { bold, oneLine } from './text.ts';

/** Asks about each call that waits and writes the answers into the state; `false` when the person left. */
export async function decide(state: RunState, terminal: Terminal): Promise<boolean> {
  for (const item of state.interruptions) {
    terminal.write(describeCall(item));
    const answered = item.inDoubt ? await settleDoubt(state, item, terminal) : await approve(state, item, terminal);
    if (!answered) return false;
  }
  return true;
}

async function approve(state: RunState, item: ToolApprovalItem, terminal: Terminal): Promise<boolean> {
  for (;;) {
    const answer = await terminal.ask('Approve? y / n / reason (no, and why) / always (in this request): ');
    if (answer === undefined) return false;
    const [word = '', ...rest] = answer.split(/\s+/);
    switch (word.toLowerCase()) {
      case 'y':
      case 'yes':
        state.approve(item);
        return true;
      case 'a':
      case 'always':
        state.approve(item, { always: true });
        return true;
      case 'n':
      case 'no':
        state.reject(item);
        return true;
      case 'r':
      case 'reason': {
        const message = rest.join(' ') || (await terminal.ask('Reason: '));
        if (message === undefined) return false;
        state.reject(item, message === '' ? {} : { message: `Not approved: ${message}` });
        return true;
      }
      default:
        terminal.write('Please answer y, n, reason or always; exit leaves, and asks again next time.\n');
    }
  }
}

/** Of a call that was started, and whose end nobody saw, the person finds out what became of it. */
async function settleDoubt(state: RunState, item: ToolApprovalItem, terminal: Terminal): Promise<boolean> {
  for (;;) {
    const answer = await terminal.ask('Did it happen? done (yes) / again (call it again) / n (no, and leave it): ');
    if (answer === undefined) return false;
    const [word = '', ...rest] = answer.split(/\s+/);
    switch (word.toLowerCase()) {
      case 'd':
      case 'done': {
        const output = rest.join(' ') || (await terminal.ask('What did it give? '));
        if (output === undefined) return false;
        state.decide(item, { type: 'done', output: output || 'It is done.' });
        return true;
      }
      case 'again':
        // With the idempotency key of the first attempt: a refund that happened is not paid twice.
        state.decide(item, { type: 'rerun' });
        return true;
      case 'n':
      case 'no':
        state.reject(item, { message: 'It did not happen.' });
        return true;
      default:
        terminal.write('Please answer done, again or n; exit leaves, and asks again next time.\n');
    }
  }
}

/** The tool and its arguments, those that say something, one a line. */
function describeCall(item: ToolApprovalItem): string {
  const args = Object.entries(JSON.parse(item.arguments) as object).filter(([, value]) => value !== null);
  const width = Math.max(0, ...args.map(([name]) => name.length));
  const lines = args.map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `    ${oneLine(name).padEnd(width)}  ${oneLine(text)}\n`;
  });
  const name = oneLine(item.name);
  const what = item.inDoubt
    ? `${name} was started, and nobody saw it end. It may have happened:`
    : `The desk wants to call ${name}:`;
  return `${bold(what)}\n${lines.join('')}`;
}
