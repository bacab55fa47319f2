// `@agents/testkit/python`: sessions of the Python SDK beside ours, on one store.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { afterAll, beforeAll } from 'vitest';

import { provide } from './servers.mjs';

/** What a backend's program begins with: `on_session(place, action, argument)` opens the session and lets `act` do it. */
const PRELUDE = `
import asyncio, json, os, sys
async def act(session, action, argument=None):
    if action == "add":
        await session.add_items(argument)
    elif action == "pop":
        return await session.pop_item()
    elif action == "clear":
        await session.clear_session()
    elif action == "write":
        for batch in range(50):
            await session.add_items([{"role": "user", "content": f"{argument}/{batch}/{index}"} for index in range(3)])
    return await session.get_items()
`;

/** Takes lines of JSON, and answers each with one. */
const LOOP = `
async def main():
    for line in iter(sys.stdin.readline, ""):
        try:
            answer = {"answer": await on_session(*json.loads(line))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
asyncio.run(main())
# Without the farewell of connections that are still open.
sys.stdout.flush()
os._exit(0)
`;

/** `get` and all others but `pop` answer with the items. `write` appends 50 batches of three, under the name that is given. */
export type PythonAction = 'get' | 'add' | 'pop' | 'clear' | 'write' | (string & {});

export interface PythonSessions {
  /** @throws Error with what Python raised */
  ask(place: unknown, action: PythonAction, argument?: unknown): Promise<unknown>;
  end(): Promise<void>;
}

/**
 * @param onSession a program that defines `async def on_session(place, action, argument)`; `act(session, action, argument)` is there
 * @throws Error that says how to get the Python SDK, where it is missing
 */
export async function startPython(onSession: string): Promise<PythonSessions> {
  if (process.env['TEST_PYTHON'] === undefined) await provide(['python']);
  const { TEST_PYTHON: python, TEST_PYTHON_MISSING: missing } = process.env;
  if (python === undefined) throw new Error(missing ?? 'TEST_PYTHON is to be the path of a Python.');
  const child = spawn(python, ['-c', PRELUDE + onSession + LOOP], { stdio: ['pipe', 'pipe', 'inherit'] });
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ended = new Promise((resolve) => void child.once('exit', resolve));
  return {
    async ask(place, action, argument = null) {
      child.stdin.write(`${JSON.stringify([place, action, argument])}\n`);
      const { value } = (await answers.next()) as { value?: string };
      if (value === undefined) throw new Error('The Python program ended.');
      const { answer, error } = JSON.parse(value) as { answer?: unknown; error?: string };
      if (error !== undefined) throw new Error(error);
      return answer;
    },
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

type Ask = (action: PythonAction, argument?: unknown) => Promise<unknown>;

/**
 * Sessions of the Python SDK for the tests of a file, or of a `describe`: the program is started before them and ended after
 * them.
 *
 * @param onSession as of `startPython`
 * @returns what asks the session of a place; the place of the moment, where a function gives it
 */
export function pythonForTests(onSession: string): (place: unknown) => Ask {
  let python: PythonSessions | undefined;
  beforeAll(async () => {
    python = await startPython(onSession);
  }, 60_000);
  afterAll(() => python?.end());
  return (place) => async (action, argument) => {
    if (python === undefined) throw new Error('Python is there for tests and their hooks alone.');
    return await python.ask(typeof place === 'function' ? (place as () => unknown)() : place, action, argument);
  };
}

/** Of kinds and texts that are easily changed on the way. */
export const pythonItems: readonly object[] = [
  { role: 'user', content: 'Grüße 😀 漢字 "quoted" \\ / \u007f \u2028 tab\t \n' },
  { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'thinking' }], encrypted_content: 'gAAAA' },
  { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'refund', arguments: '{"id": "7"}' },
  { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'seen' }] },
  { type: 'numbers', values: [0, -1, 0.1, 1e-7, 1.5e300, 9007199254740991], nothing: null },
];

/** What of a session these checks use. */
interface OurSession {
  getItems(): Promise<object[]>;
  addItems(items: readonly object[]): Promise<void>;
  popItem(): Promise<object | undefined>;
  clearSession(): Promise<void>;
}

/**
 * Ours and Python's take turns on one history, which is empty: each reads, pops and clears what the other wrote.
 *
 * @throws AssertionError
 */
export async function checkTurnsWithPython(ours: OurSession, python: Ask): Promise<void> {
  await ours.addItems(pythonItems);
  assert.deepEqual(await python('get'), pythonItems);
  assert.deepEqual(await python('pop'), pythonItems.at(-1));
  assert.deepEqual(await ours.getItems(), pythonItems.slice(0, -1));
  await python('add', pythonItems.slice(-1));
  assert.deepEqual(await ours.getItems(), pythonItems);
  assert.deepEqual(await ours.popItem(), pythonItems.at(-1));
  await python('clear');
  assert.deepEqual(await ours.getItems(), []);
  await ours.addItems(pythonItems.slice(0, 2));
  await ours.clearSession();
  assert.deepEqual(await python('get'), []);
  assert.equal(await python('pop'), null);
  await python('add', pythonItems);
  assert.deepEqual(await ours.getItems(), pythonItems);
  await ours.clearSession();
}

/**
 * Ours and Python's write at the same time, 50 batches of three each: all are there, in the order of their writer and, where
 * the store keeps batches together, whole. Then they pop at the same time: each item once.
 *
 * @throws AssertionError
 */
export async function checkWritingBesidePython(
  sessions: Readonly<Record<string, OurSession>>,
  python: Ask,
  { batchesTogether = true }: { readonly batchesTogether?: boolean } = {},
): Promise<void> {
  const write = async ([name, session]: readonly [string, OurSession]): Promise<void> => {
    for (let batch = 0; batch < 50; batch++)
      await session.addItems([0, 1, 2].map((index) => ({ role: 'user', content: `${name}/${batch}/${index}` })));
  };
  const entries = Object.entries(sessions);
  await Promise.all([python('write', 'python'), ...entries.map(write)]);
  const stored = await python('get');
  for (const [, session] of entries) assert.deepEqual(await session.getItems(), stored);
  const contents = (stored as { content: string }[]).map(({ content }) => content);
  assert.equal(contents.length, 150 * (entries.length + 1));
  for (const name of ['python', ...Object.keys(sessions)])
    assert.deepEqual(
      contents.filter((content) => content.startsWith(`${name}/`)),
      Array.from({ length: 150 }, (_, index) => `${name}/${Math.floor(index / 3)}/${index % 3}`),
    );
  const together = batchesTogether ? contents : [];
  for (let at = 0; at < together.length; at += 3) {
    const batch = contents[at]?.replace(/\/\d+$/, '');
    assert.deepEqual(contents.slice(at, at + 3), [`${batch}/0`, `${batch}/1`, `${batch}/2`]);
  }
  const pops = Array.from({ length: 5 }, () => [python('pop'), ...entries.map(([, session]) => session.popItem())]);
  const popped = (await Promise.all(pops.flat())).map((item) => (item as { content: string }).content);
  // Each item once, and no other than the newest.
  assert.deepEqual(popped.toSorted(), contents.slice(-popped.length).toSorted());
  assert.equal(((await python('get')) as object[]).length, contents.length - popped.length);
}
