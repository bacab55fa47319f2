import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../items/wire.ts';
import type { AnyAgent } from '../agent/agent.ts';
import { Agent } from '../agent/agent.ts';
import { internal } from '../base/brand.ts';
import { RunState } from './run-state.ts';

const folder = new URL('../../test/fixtures/python/', import.meta.url);
const files = ['.', '0.22.0', '0.22.3', '0.23.1'].flatMap((release) =>
  readdirSync(new URL(`${release}/`, folder))
    .filter((name) => name.endsWith('.json'))
    .map((name) => (release === '.' ? name : `${release}/${name}`)),
);

function load(file: string): { [key: string]: unknown } {
  return JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
}

/** The graph of a file: handoffs and agent tools, which come later, are put in by hand. */
function graphOf(file: string): AnyAgent {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const desk = new Agent({ name: 'Desk' });
  const billing = new Agent({ name: 'Billing' });
  if (name.startsWith('d')) Object.defineProperty(desk, 'handoffs', { value: [billing] });
  if (name.startsWith('c')) (desk.tools as unknown[]).push({ name: 'ask_billing', [internal]: { agent: billing } });
  return desk;
}

type Members = { [key: string]: unknown };

/**
 * What may differ: the label, our own key, ownership where Python has none, a record beside the marker; of the tracker order
 * and repetitions; members that are newer than the file's label, if they say nothing.
 */
function comparable(state: Members, source: Members): Members {
  const { $schemaVersion: _, agents_ts: __, ...others } = structuredClone(state);
  if (source['current_response_generated_item_ownership'] === undefined) delete others['current_response_generated_item_ownership'];
  if (source['terminal_unrecoverable'] === true) delete others['pending_session_write'];
  const tracker = Object.entries(others['tool_use_tracker'] as { [agent: string]: string[] });
  others['tool_use_tracker'] = Object.fromEntries(tracker.map(([agent, tools]) => [agent, [...new Set(tools)].toSorted()]));
  withoutNews(others['last_processed_response'], source['last_processed_response'], { mcp_tool_bindings: {} });
  withoutNews(others['pending_session_write'], source['pending_session_write'], { response_id: null, store: null, has_local_tool_outputs: false });
  return others;
}

function withoutNews(written: unknown, source: unknown, empty: Members): void {
  for (const [key, value] of Object.entries(empty)) {
    const members = written as Members | null | undefined;
    if (members && !(key in (source as Members)) && JSON.stringify(members[key]) === JSON.stringify(value)) delete members[key];
  }
}

describe('states written by Python, restored and written again, are equal [STATE-341, 342, 343]', () => {
  expect(files).toHaveLength(69);
  test.each(files)('%s', async (file) => {
    const source = load(file);
    const state = await RunState.fromJSON(graphOf(file), source);
    const written = state.toJSON();
    expect(written['$schemaVersion']).toBe('1.21');
    expect(comparable(written, source)).toEqual(comparable(source, source));
    const again = (await RunState.fromString(graphOf(file), state.toString())).toJSON();
    expect(again).toEqual(written);
  });
});
export type { JsonObject };
