import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { changed, graphOf, minimalState, pythonState, pythonStates } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { recordOf, RunState } from './run-state.ts';
import { checkSupported, unsupportedSubject } from './unsupported.ts';

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetAll());

const subjectOf = async (json: Members, file = ''): Promise<string | undefined> =>
  unsupportedSubject(recordOf((await RunState.fromJSON(graphOf(file), json)) as RunState));

/** Files of subjects that come later, with a word of the reason. The others go on here. */
const later: { [file: string]: RegExp } = {
  'a5_pending_input.json': /staged input/,
  'a8_namespaced_interrupted.json': /namespace/,
  'a9_namespaced_sticky.json': /namespace/,
  'e6_shell_patch_custom_interrupted.json': /custom_tool_call/,
  'e7_shell_patch_custom_sticky.json': /custom_tool_call/,
  'e8_hosted_mcp_interrupted.json': /mcp_approval_request/,
  'e9_hosted_mcp_sticky.json': /mcp_approval_request/,
  'g1_local_mcp_interrupted.json': /MCP server/,
  'g2_local_mcp_approved.json': /MCP server/,
  'g4_deferred_tool_interrupted.json': /tool search/,
};

describe('a state whose run cannot go on here', () => {
  test.each(pythonStates)('%s', async (file) => {
    const name = file.slice(file.lastIndexOf('/') + 1);
    const subject = await subjectOf(pythonState(file), file);
    expect(subject ?? 'goes on').toMatch(later[name] ?? /^goes on$/);
  });

  const paused = (): Members => pythonState('a1_function_interrupted.json');
  test.each<[string, Members, RegExp, string]>([
    ['a sandbox', minimalState('1.21', { sandbox: {} }), /sandbox/, 'sandbox_unsupported'],
    ['a run store', minimalState('1.21', { agents_ts: { run_id: 'r' } }), /run store/, 'store_missing'],
    [
      'approvals that expire',
      {
        ...paused(),
        agents_ts: {
          expiries: { call_a1: { created_at: '2026-01-01T00:00:00Z', expires_at: '2026-01-01T00:00:00Z' } },
        },
      },
      /expires/,
      'user_error',
    ],
    ['an accepted response', changed(paused(), 'current_step.data.response_accepted', true), /provider/, 'user_error'],
    [
      'a computer call in the response',
      changed(paused(), 'last_processed_response.computer_actions', [{ tool_call: {} }]),
      /computer/,
      'user_error',
    ],
    [
      'a binding to an MCP server',
      changed(paused(), 'last_processed_response.mcp_tool_bindings', { call_a1: ['s', 't', 0] }),
      /MCP/,
      'mcp_binding_mismatch',
    ],
  ])('%s: it is kept, and a run is refused', async (_, json, reason, code) => {
    const state = (await RunState.fromJSON(new Agent({ name: 'Desk' }), json)) as RunState;
    expect(unsupportedSubject(recordOf(state))).toMatch(reason);
    expect(() => checkSupported(recordOf(state))).toThrow(expect.objectContaining({ name: 'UserError', code }));
    const again = (await RunState.fromJSON(new Agent({ name: 'Desk' }), state.toJSON())) as RunState;
    expect(again.toJSON()).toEqual(state.toJSON());
    expect(unsupportedSubject(recordOf(again))).toMatch(reason);
  });

  test('a waiting call of a nested run that the state does not hold is no obstacle, and waits no more [STATE-405]', async () => {
    const json = changed(pythonState('c1_nested_interrupted.json'), 'last_processed_response.functions', []);
    expect(await subjectOf(json, 'c1')).toBeUndefined();
    expect((await RunState.fromJSON(graphOf('c1'), json)).interruptions).toEqual([]);
  });

  test('a binding that says nothing usable binds nothing', async () => {
    expect(
      await subjectOf(
        changed(paused(), 'last_processed_response.mcp_tool_bindings', { call_a1: ['s', 7, 0], b: 'x', c: ['s', 't'] }),
      ),
    ).toBeUndefined();
  });

  test('what the mounts of a sandbox give access to is not kept [STATE-407]', async () => {
    const sandbox = {
      mounts: [
        {
          type: 's3',
          access_key_id: 'planted',
          secret_access_key: 'planted',
          session_token: 'planted',
          bucket: 'b',
          driver_options: { x: 'planted' },
        },
      ],
      id: 1,
    };
    const state = await RunState.fromJSON(new Agent({ name: 'Desk' }), minimalState('1.21', { sandbox }));
    const written = state.toJSON()['sandbox'];
    expect(JSON.stringify(written)).not.toContain('planted');
    expect(written).toMatchObject({
      id: 1,
      authority_redacted: true,
      mounts: [{ type: 's3', bucket: 'b', access_key_id: null, driver_options: {} }],
    });
    expect(
      (await RunState.fromJSON(new Agent({ name: 'Desk' }), minimalState('1.21', { sandbox: { id: 1 } }))).toJSON()[
        'sandbox'
      ],
    ).toEqual({ id: 1 });
  });

  test('runs inside runs are at most 16 deep [STATE-414]', async () => {
    const nest = (depth: number): Members => {
      let state: Members = minimalState();
      for (let i = 0; i < depth; i++) {
        const entry = { tool_call: { type: 'function_call' }, tool: { name: 'ask' }, agent_run_state: state };
        state = minimalState('1.21', { last_processed_response: { functions: [entry] } });
      }
      return state;
    };
    await expect(subjectOf(nest(16))).resolves.toBeUndefined();
    await expect(subjectOf(nest(17))).rejects.toMatchObject({ code: 'state_malformed' });
  });
});
