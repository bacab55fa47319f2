import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { graphOf, pythonState, pythonStates } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { RunState } from './run-state.ts';

/**
 * What may differ: the label, our own key, ownership where Python has none, a record beside the marker; of the tracker order
 * and repetitions; members that are newer than the file's label, if they say nothing.
 */
function comparable(state: Members, source: Members): Members {
  const { $schemaVersion: _, agents_ts: __, ...others } = structuredClone(state);
  if (source['current_response_generated_item_ownership'] === undefined) {
    delete others['current_response_generated_item_ownership'];
  }
  if (source['terminal_unrecoverable'] === true) delete others['pending_session_write'];
  const tracker = Object.entries(others['tool_use_tracker'] as { [agent: string]: string[] });
  others['tool_use_tracker'] = Object.fromEntries(
    tracker.map(([agent, tools]) => [agent, [...new Set(tools)].toSorted()]),
  );
  const response = { mcp_tool_bindings: {} };
  withoutNews(others['last_processed_response'], source['last_processed_response'], response);
  const write = { response_id: null, store: null, has_local_tool_outputs: false };
  withoutNews(others['pending_session_write'], source['pending_session_write'], write);
  const inner = nestedStates(source);
  nestedStates(others).forEach((entry, index) => {
    entry['agent_run_state'] = comparable(
      entry['agent_run_state'] as Members,
      inner[index]?.['agent_run_state'] as Members,
    );
  });
  return others;
}

/** Entries of calls whose runs are paused. */
function nestedStates(state: Members): Members[] {
  const functions = (state['last_processed_response'] as Members | null)?.['functions'] as Members[] | undefined;
  return (functions ?? []).filter((entry) => entry['agent_run_state']);
}

function withoutNews(written: unknown, source: unknown, empty: Members): void {
  for (const [key, value] of Object.entries(empty)) {
    const members = written as Members | null | undefined;
    if (members && !(key in (source as Members)) && JSON.stringify(members[key]) === JSON.stringify(value)) {
      delete members[key];
    }
  }
}

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetAll());

describe('a state written by Python, restored and written again, is equal', () => {
  test('the files are all there', () => {
    expect(pythonStates).toHaveLength(69);
  });

  test.each(pythonStates)('%s [STATE-341, 342, 343]', async (file) => {
    const source = pythonState(file);
    const state = await RunState.fromJSON(graphOf(file), source);
    const written = state.toJSON();
    expect(written.$schemaVersion).toBe('1.21');
    expect(comparable(written, source)).toEqual(comparable(source, source));
    const again = (await RunState.fromString(graphOf(file), state.toString())).toJSON();
    expect(again).toEqual(written);
  });

  test.each(['c1_nested_interrupted.json', 'c2_nested_approved.json', '0.23.1/c2_nested_approved.json'])(
    '%s, also while the agent behind the agent tool cannot be reached',
    async (file) => {
      const source = pythonState(file);
      const desk = new Agent({ name: 'Desk' });
      const state = await RunState.fromJSON(desk, source);
      expect(state.interruptions).toEqual([]);
      expect(state.status).toBe('interrupted');
      expect(comparable(state.toJSON(), source)).toEqual(comparable(source, source));
    },
  );

  test.each([
    'd1_handoff_then_interrupted.json',
    'd2_handoff_finished.json',
    'd3_nested_history_then_interrupted.json',
  ])('%s is refused when its current agent cannot be reached [STATE-375]', async (file) => {
    const restore = RunState.fromJSON(new Agent({ name: 'Desk' }), pythonState(file));
    await expect(restore).rejects.toMatchObject({ name: 'UserError', code: 'agent_missing' });
    await expect(restore).rejects.not.toThrow('Billing');
  });
});
