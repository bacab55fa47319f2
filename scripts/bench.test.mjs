import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { root } from './bootstrap.mjs';

const all = ['bare', 'ai', '@openai/agents', '@agents/core'];
const packages = all.slice(1);
const own = all.slice(3);
const stores = ['bare', '@agents/core'];

test('the bench measures every row that is quick to have, of every peer, and knows what each goal is about', async () => {
  const args = [join(root, 'bench/src/main.ts'), '--smoke', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { rows } = JSON.parse(stdout);
  expect(rows.map(({ title, figures, goals }) => [title, Object.keys(figures), goals.length])).toEqual([
    ['one tool call', all, 1],
    ['… traced, all dropped', all, 1],
    ['… of its own untraced', all, 1],
    ['50 turns', all, 1],
    ['500 turns', all, 1],
    ['5,000 text deltas', all, 1],
    ['1,000 runs at once', all, 1],
    ['… peak of the process', all, 1],
    ['100 tool calls in a turn', all, 1],
    ['1,000 tool calls in a turn', own, 1],
    ['one handoff, in a chain of 10 agents', own, 0],
    ['… in a chain of 50, of 10', own, 1],
    ['one tool call as OpenTelemetry spans, exported', stores, 1],
    ['… spans that arrived', own, 1],
    ['traces of one tool call, posted in batches', stores, 1],
    ['… fit for OpenAI', own, 1],
    ['… records that arrived', own, 1],
    ['runs of 100,000 spans without a receiver, of those with one', own, 1],
    ['paused run, 10,000 items of input: save', own, 0],
    ['… of JSON.stringify', own, 1],
    ['… restore', own, 0],
    ['… of JSON.parse', own, 1],
    ['… save of 100,000, of 10,000', own, 1],
    ['… restore of 100,000, of 10,000', own, 1],
    ['paused run, 10,000 items of 3,333 turns: save', own, 0],
    ['… of JSON.stringify', own, 1],
    ['… the first time', own, 1],
    ['… restore', own, 0],
    ['… of JSON.parse', own, 1],
    ['pause 10 agent tools deep', own, 0],
    ['… of 5 deep', own, 1],
    ['… bytes of its state', own, 1],
    ['… save', own, 1],
    ['… restore 10 deep, 5 deep', own, 1],
    ['… resume 10 deep, 5 deep', own, 1],
    ['SQLite session of 2,000 items: append of 2', stores, 1],
    ['… append of 2 with an operation id', own, 1],
    ['… last 20', stores, 1],
    ['… append of 2, synchronous=FULL', stores, 1],
    ['… append of 2 with an operation id, FULL', own, 1],
    ['… append to 20,000, to 2,000', own, 1],
    ['… last 20 of 20,000, of 2,000', own, 1],
    ...['SQLiteSession', ...['better-sqlite3', 'libsql'].map((name) => `DrizzleSession, ${name}`)].flatMap((name) => [
      [`${name}: append of 4 to 100,000`, stores, 1],
      ['… last 20 of 100,000', stores, 1],
      ['… of last 20 of 1,000', own, 1],
      ['… its memory', own, 1],
    ]),
    ['SQLite: put of 4, append of 4 by SQLiteSession', ['LangGraph', '@agents/core'], 1],
    ['… by DrizzleSession, better-sqlite3', own, 1],
    ['cold import', packages, 1],
    ['import: modules', packages, 1],
    ['import: size', packages, 1],
    ['import: other packages', packages, 1],
  ]);
  const missing = rows.flatMap(({ title, figures }) =>
    Object.entries(figures)
      .filter(([, { median }]) => !Number.isFinite(median) || median < 0)
      .map(([peer]) => `${title}: ${peer}`),
  );
  expect(missing).toEqual([]);
});
