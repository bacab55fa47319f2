import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { Agent, tool } from '@agents/core';
import { OfflineModel, ScriptedModel, toolCall } from '@agents/core/testing';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { converse } from '../src/conversation.ts';
import { openDesk } from '../src/desk.ts';
import type { Desk } from '../src/desk.ts';
import { DeskFolder } from '../src/folder.ts';
import type { Terminal } from '../src/terminal.ts';
import { temporaryFolder } from './processes.ts';

/** Answers from a list, and leaves after the last one. */
class FakeTerminal implements Terminal {
  readonly #answers: string[];
  text = '';

  constructor(answers: readonly string[]) {
    this.#answers = [...answers];
  }

  ask(question: string): Promise<string | undefined> {
    const answer = this.#answers.shift();
    this.text += `${question}${answer ?? ''}\n`;
    return Promise.resolve(answer);
  }

  write(text: string): void {
    this.text += text;
  }

  #working = new AbortController();

  work<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#working = new AbortController();
    return task(this.#working.signal);
  }

  /** Ctrl-C while the desk works. */
  stop(): void {
    this.#working.abort();
  }

  close(): void {}
}

interface Visit {
  readonly text: string;
  readonly desk: Pick<Desk, 'orders' | 'session' | 'folder'>;
}

/** One visit to the desk of a folder: opened, talked to, left. */
async function visit(
  path: string,
  answers: string[],
  look: (visit: Visit) => unknown = () => {},
  model: Desk['model'] = { model: new OfflineModel({ notice: false }) },
): Promise<string> {
  await using desk = await openDesk(path, model);
  const terminal = new FakeTerminal(answers);
  await converse(desk, terminal);
  await look({ text: terminal.text, desk });
  return terminal.text;
}

// Trace trees.
beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => {}));
afterEach(() => vi.restoreAllMocks());

test('an approved refund happens', async () => {
  await visit(temporaryFolder(), ['Refund order 1042', 'y'], ({ text, desk }) => {
    expect(text).toContain('The desk wants to call refund_order:\n    orderId  1042\n    amount   89\n');
    expect(text).toContain('Desk: ');
    expect(desk.orders.find('1042')).toMatchObject({ status: 'refunded', refunded: 89 });
    expect(existsSync(desk.folder.unfinishedRun)).toBe(false);
  });
});

test('a rejected refund does not, and the reason reaches the model', async () => {
  await visit(
    temporaryFolder(),
    ['Refund order 1042', 'n', 'Refund order 1043', 'reason', 'too late'],
    ({ text, desk }) => {
      expect(text).toContain('← Tool execution was not approved.');
      expect(text).toContain('Reason: too late');
      expect(text).toContain('← Not approved: too late');
      expect(desk.orders.countRefunds('1042') + desk.orders.countRefunds('1043')).toBe(0);
    },
  );
});

test('a reason may stand on the line of the answer', async () => {
  expect(await visit(temporaryFolder(), ['Refund order 1042', 'reason too late'])).toContain(
    '← Not approved: too late',
  );
});

test('always holds for the later calls of the same request', async () => {
  const call = (id: string) => ({
    type: 'function_call' as const,
    call_id: `call_${id}`,
    name: 'refund_order',
    arguments: JSON.stringify({ orderId: id, amount: 1, reason: null }),
  });
  const model = new ScriptedModel([call('1042'), call('1043'), 'Both are refunded.']);
  await visit(
    temporaryFolder(),
    ['Refund one euro of 1042, then of 1043', 'always'],
    ({ text, desk }) => {
      expect(text.match(/Approve\?/g)).toHaveLength(1);
      expect([desk.orders.countRefunds('1042'), desk.orders.countRefunds('1043')]).toEqual([1, 1]);
    },
    { model },
  );
  model.assertDone();
});

test('an answer that is none asks again', async () => {
  const text = await visit(temporaryFolder(), ['Refund order 1042', 'maybe', '', 'n']);
  expect(text.match(/Please answer y, n, reason or always/g)).toHaveLength(2);
});

test('leaving at the approval and coming back asks again, in the same conversation', async () => {
  const path = temporaryFolder();
  await visit(path, ['Where is order 1041?', 'Refund order 1042'], ({ desk }) => {
    expect(existsSync(desk.folder.unfinishedRun)).toBe(true);
    expect(desk.orders.countRefunds('1042')).toBe(0);
  });
  await visit(path, ['y', 'Where is order 1041?'], async ({ text, desk }) => {
    expect(text).toMatch(/^Welcome back: this conversation has 2 of your messages\./);
    expect(text).toContain('The desk wants to call refund_order:');
    expect(desk.orders.countRefunds('1042')).toBe(1);
    const messages = (await desk.session.getItems()).filter((item) => 'role' in item && item.role === 'user');
    expect(messages).toHaveLength(3);
  });
});

test('a request that failed is gone on with after Enter, also in a later visit', async () => {
  const path = temporaryFolder();
  const broken = new ScriptedModel([new Error('The line is dead.'), new Error('The line is dead.')]);
  const failed = await visit(path, ['Refund order 1042', ''], undefined, { model: broken });
  expect(failed.match(/The line is dead\./g)).toHaveLength(2);
  expect(failed).toContain('The last request is not finished. Enter tries again');
  await visit(path, ['', 'y'], async ({ desk }) => {
    expect(desk.orders.countRefunds('1042')).toBe(1);
    const messages = (await desk.session.getItems()).filter((item) => 'role' in item && item.role === 'user');
    expect(messages).toHaveLength(1);
  });
});

test('something else may be said instead of trying again', async () => {
  const model = new ScriptedModel([new Error('The line is dead.'), 'Hello.']);
  const text = await visit(temporaryFolder(), ['Refund order 1042', 'Hello?'], undefined, { model });
  expect(text).toContain('Desk: Hello.');
  expect(text).not.toContain('Approve?');
});

test('a file of orders that is locked meanwhile is told to the model, and nothing is paid', async () => {
  const path = temporaryFolder();
  await visit(path, ['Refund order 1042']);
  await using desk = await openDesk(path, { model: new OfflineModel({ notice: false }) });
  using other = new DatabaseSync(desk.folder.orders);
  other.exec('BEGIN IMMEDIATE');
  const terminal = new FakeTerminal(['y']);
  await converse(desk, terminal);
  expect(terminal.text).toContain('← Error: The file is locked by another program; nothing was changed.');
  expect(desk.orders.countRefunds('1042')).toBe(0);
});

test('a file of a run that cannot be read is put aside and the conversation goes on', async () => {
  const path = temporaryFolder();
  writeFileSync(new DeskFolder(path).unfinishedRun, '{"$schemaVersion": "1.2');
  const text = await visit(path, ['Where is order 1041?']);
  expect(text).toContain('The unfinished run cannot be read: ');
  expect(text).toContain('Desk: Order 1041');
  expect(readdirSync(path).filter((name) => name.includes('.unreadable-'))).toHaveLength(1);
});

test('what a model writes can neither move the cursor of who approves it nor look like another argument', async () => {
  const call = {
    type: 'function_call' as const,
    call_id: 'call_1',
    name: 'refund_order',
    arguments: JSON.stringify({ orderId: '1042\u001b[1A\u202e', amount: 1, reason: 'a\nApprove? y' }),
  };
  const text = await visit(temporaryFolder(), ['Refund'], undefined, { model: new ScriptedModel([call]) });
  // oxlint-disable-next-line no-control-regex
  expect(text).not.toMatch(/[\u001b\u202e]/);
  expect(text).toContain('orderId  1042�[1A�');
  expect(text).toContain('reason   a⏎Approve? y\n');
});

describe('a call that was started, and whose end nobody saw', () => {
  /** Payments over a line that is slow: the person stops the first attempt, `failures` more break down. */
  function slowPayments(needsApproval: boolean, failures = 0) {
    const attempts: string[] = [];
    const pay = tool({
      name: 'pay',
      needsApproval,
      failureErrorFunction: null,
      execute: async (_args, ctx) => {
        attempts.push(ctx.idempotencyKey);
        if (attempts.length === 1) {
          await new Promise((_resolve, reject) => {
            ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error));
            kit.terminal?.stop();
          });
        }
        if (attempts.length <= 1 + failures) throw new Error('The line is dead.');
        return 'paid';
      },
    });
    const kit = {
      attempts,
      agent: new Agent({ name: 'Desk', tools: [pay] }),
      model: new ScriptedModel([toolCall('pay', { amount: 5 }), 'All is well.', 'Hello.']),
      terminal: undefined as FakeTerminal | undefined,
      async visit(path: string, answers: string[]): Promise<string> {
        await using desk = await openDesk(path, { model: kit.model });
        const terminal = new FakeTerminal(answers);
        kit.terminal = terminal;
        await converse({ ...desk, agent: kit.agent }, terminal);
        return terminal.text;
      },
    };
    return kit;
  }

  const doubt = 'pay was started, and nobody saw it end. It may have happened:\n    amount  5\n';

  test.each([true, false])('is asked about, and then called again under its key (approval: %s)', async (approval) => {
    const kit = slowPayments(approval);
    const text = await kit.visit(temporaryFolder(), ['Pay', ...(approval ? ['y'] : []), '', 'y', 'again']);
    expect(text).toContain('Stopped.');
    expect(text).toContain(doubt);
    expect(text.match(/Approve\?/g)?.length ?? 0).toBe(approval ? 1 : 0);
    expect(text).toContain('Please answer done, again or n');
    expect(text).toContain('← paid');
    expect(kit.attempts).toHaveLength(2);
    expect(new Set(kit.attempts).size).toBe(1);
  });

  test('is not called again when it happened, nor when it shall not: also in a later visit', async () => {
    for (const [answers, told] of [
      [['done', 'receipt 7'], '← receipt 7'],
      [['done receipt 7'], '← receipt 7'],
      [['done', ''], '← It is done.'],
      [['n'], '← It did not happen.'],
    ] as const) {
      const path = temporaryFolder();
      const kit = slowPayments(true);
      await kit.visit(path, ['Pay', 'y']);
      const text = await kit.visit(path, [...answers]);
      expect(text).toContain(doubt);
      expect(text).toContain(told);
      expect(text).toContain('Desk: All is well.');
      expect(kit.attempts).toHaveLength(1);
    }
  });

  test.each([true, false])('comes back to the person each time, who may drop it (approval: %s)', async (approval) => {
    const path = temporaryFolder();
    const kit = slowPayments(approval, 2);
    const text = await kit.visit(path, ['Pay', ...(approval ? ['y'] : []), '', 'again', '', 'again', 'drop']);
    expect(text.match(/The line is dead\./g)).toHaveLength(2);
    expect(text.match(/Enter tries again, drop gives it up/g)).toHaveLength(3);
    expect(kit.attempts).toHaveLength(3);
    expect(existsSync(new DeskFolder(path).unfinishedRun)).toBe(false);
    expect(text).toMatch(/drop\nYou: /);
  });
});

test('a run that can never go on is tried once for each time the person says so', async () => {
  const path = temporaryFolder();
  const call = toolCall('refund_order', { orderId: '1042', amount: 1, reason: null });
  await visit(path, ['Refund'], undefined, { model: new ScriptedModel([call]) });
  const dead = new ScriptedModel([]);
  const text = await visit(path, ['y', '', 'drop'], undefined, { model: dead });
  expect(text.match(/Enter tries again/g)).toHaveLength(2);
});
