import { afterEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { UserError } from '../base/errors.ts';
import { resetAll } from '../base/reset.ts';
import { RunContext } from '../state/context.ts';
import { logged, rejection } from '../../test/run-kit.ts';
import { Agent } from './agent.ts';
import { handoff, Handoff } from './handoff.ts';
import type { HandoffInit } from './handoff.ts';

afterEach(() => resetAll());

const billing = new Agent({ name: 'Billing', handoffDescription: 'Knows money.' });
const inputType = z.object({ reason: z.string(), urgent: z.boolean().optional() });
const ctx = new RunContext(undefined);
const init = (more: object = {}): HandoffInit<unknown, unknown> => ({
  toolName: 'escalate',
  toolDescription: 'To a senior.',
  agentName: 'Senior',
  onInvokeHandoff: () => billing,
  ...more,
});

describe('the name of a handoff', () => {
  test.each([
    ['Billing', 'transfer_to_billing'],
    ['Refund Desk', 'transfer_to_refund_desk'],
    ['a \t\u00a0b', 'transfer_to_a___b'],
    ['A_1', 'transfer_to_a_1'],
  ])('%j gives %s, without a warning [TOOL-HO1]', (name, toolName) => {
    const lines = logged();
    expect(handoff(new Agent({ name })).toolName).toBe(toolName);
    expect(lines).toEqual([]);
  });

  test.each([
    ['Straße #1', 'transfer_to_stra_e__1'],
    ['A-B', 'transfer_to_a_b'],
    ['Bé', 'transfer_to_b_'],
    ['😀 x', 'transfer_to___x'],
  ])('%j gives %s, with a warning that does not show it [TOOL-HO1] [TOOL-HO46]', (name, toolName) => {
    const lines = logged();
    expect(handoff(new Agent({ name })).toolName).toBe(toolName);
    expect(lines.map(({ level }) => level)).toEqual(['warn']);
    expect(lines[0]?.message).toMatch(/toolNameOverride/);
    expect(lines[0]?.message).not.toContain(name);
    const open = logged({ dontLogToolData: false });
    handoff(new Agent({ name }));
    expect(open[0]?.message).toContain(`${name} (${toolName})`);
    handoff(new Agent({ name }), { toolNameOverride: 'x' });
    expect(open).toHaveLength(1);
  });

  test('a name of one`s own, and one that is none [TOOL-HO5] [TOOL-HO49]', () => {
    expect(handoff(billing, { toolNameOverride: 'To-Billing' }).toolName).toBe('To-Billing');
    for (const toolNameOverride of ['', 'a b', 'é', 'x'.repeat(65)])
      expect(() => handoff(billing, { toolNameOverride })).toThrow(/agent Billing: .*`toolNameOverride`/);
    expect(() => handoff(new Agent({ name: 'x'.repeat(60) }))).toThrow(/`toolNameOverride`/);
    expect(handoff(new Agent({ name: 'x'.repeat(52) })).toolName).toHaveLength(64);
  });
});

describe('a handoff', () => {
  test('tells the model of the agent and what is said of it [TOOL-HO2]', () => {
    expect(handoff(billing).toolDescription).toBe('Handoff to the Billing agent to handle the request. Knows money.');
    expect(handoff(new Agent({ name: 'B' })).toolDescription).toBe('Handoff to the B agent to handle the request.');
    expect(handoff(billing, { toolDescriptionOverride: '' }).toolDescription).toBe('');
  });

  test('without input has an empty strict schema, with input that of the type, strict too [TOOL-HO4]', () => {
    const empty = { type: 'object', properties: {}, required: [], additionalProperties: false };
    expect(handoff(billing)).toMatchObject({ inputJsonSchema: empty, strictJsonSchema: true });
    expect(handoff(billing, { inputType, onHandoff: () => {} }).inputJsonSchema).toMatchObject({
      required: ['reason', 'urgent'],
      additionalProperties: false,
      properties: { urgent: { anyOf: [{ type: 'boolean' }, { type: 'null' }] } },
    });
    expect(() => handoff(billing, { inputType: z.object({ at: z.date() }), onHandoff: () => {} })).toThrow(/at/);
    expect(() => handoff(billing, { inputType: z.looseObject({}), onHandoff: () => {} })).toThrow(UserError);
    expect(() => handoff(billing, { inputType: z.string(), onHandoff: () => {} })).toThrow(/`inputType`.*object/);
  });

  test.each<[string, object, RegExp]>([
    ['input without a callback', { inputType }, /Billing: `inputType` needs `onHandoff`/],
    ['a callback that is none', { onHandoff: 1 }, /`onHandoff` takes a function, not 1/],
    ['three parameters', { inputType, onHandoff: (_a: 1, _b: 2, _c: 3) => {} }, /declares 3 parameters/],
    ['two without input', { onHandoff: (_a: 1, _b: 2) => {} }, /context alone.*declares 2/],
    ['a filter that is none', { inputFilter: 'x' }, /inputFilter/],
    ['a switch that is none', { isEnabled: 1 }, /isEnabled/],
    ['nesting that is none', { nestHandoffHistory: 'yes' }, /nestHandoffHistory/],
    ['a bare JSON Schema', { inputType: { type: 'object' }, onHandoff: () => {} }, /inputType.*jsonSchema\(\)/],
    ['an unknown option', { onHandOff: () => {} }, /onHandoff/],
    ['approval', { needsApproval: true }, /needsApproval/],
  ])('with %s is refused [TOOL-HO3] [TOOL-HO7] [TOOL-HO21] [TOOL-HO49]', (_, options, message) => {
    expect(() => handoff(billing, options as never)).toThrow(UserError);
    expect(() => handoff(billing, options as never)).toThrow(message);
  });

  test('of something else than an agent is refused [TOOL-HO14]', () => {
    expect(() => handoff({ name: 'x' } as never)).toThrow(/Agent.*an object/);
    expect(() => handoff(handoff(billing) as never)).toThrow(UserError);
  });

  test('cannot be changed, and shows what it is', () => {
    const made = handoff(billing, { nestHandoffHistory: true });
    expect(Object.isFrozen(made)).toBe(true);
    expect(made).toBeInstanceOf(Handoff);
    expect(made).toMatchObject({ agentName: 'Billing', isEnabled: true, nestHandoffHistory: true });
    expect(Object.keys(made)).not.toContain('agent');
  });

  test('can be invoked without a run: the callback gets context and input, the agent is given [TOOL-HO11]', async () => {
    const onHandoff = vi.fn<(ctx: unknown, input: unknown) => void>();
    const made = handoff(billing, { inputType, onHandoff });
    expect(await made.onInvokeHandoff(ctx, '{"reason":"late","urgent":null}')).toBe(billing);
    expect(onHandoff.mock.calls).toEqual([[ctx, { reason: 'late' }]]);
    for (const args of ['', ' ', 'null'])
      expect(await rejection(Promise.resolve(made.onInvokeHandoff(ctx, args)))).toMatchObject({
        name: 'ModelBehaviorError',
        message: 'The handoff transfer_to_billing expected input, and the model gave none.',
      });
  });
});

describe('a handoff of one`s own', () => {
  test('is what its options say', () => {
    const own = new Handoff(init({ inputJsonSchema: { type: 'object', properties: { a: { type: 'string' } } } }));
    expect(own).toMatchObject({ toolName: 'escalate', toolDescription: 'To a senior.', agentName: 'Senior' });
    expect(own.inputJsonSchema).toEqual({
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    });
    expect(Object.isFrozen(own)).toBe(true);
    const open = { type: 'object', additionalProperties: true };
    expect(new Handoff(init({ inputJsonSchema: open, strictJsonSchema: false })).inputJsonSchema).toEqual(open);
    expect(() => new Handoff(init({ inputJsonSchema: open }))).toThrow(/escalate.*strictJsonSchema: false/);
  });

  test.each<[string, unknown, RegExp]>([
    ['no object', undefined, /toolName/],
    ['no name', init({ toolName: undefined }), /`toolName` is missing/],
    ['a name that is none', init({ toolName: 'a b' }), /'a b'.*`toolName`/],
    ['no function', init({ onInvokeHandoff: undefined }), /`onInvokeHandoff` is missing/],
    ['an unknown option', init({ onHandoff: () => {} }), /onHandoff/],
    ['a schema that is none', init({ inputJsonSchema: 1 }), /inputJsonSchema/],
  ])('with %s is refused [TOOL-HO5] [TOOL-HO49]', (_, options, message) => {
    expect(() => new Handoff(options as never)).toThrow(UserError);
    expect(() => new Handoff(options as never)).toThrow(message);
  });

  test('can be a class with members of its own', () => {
    class Escalation extends Handoff {
      level = 1;
    }
    expect(new Escalation(init()).level).toBe(1);
    expect(new Escalation(init())).toBeInstanceOf(Handoff);
    expect({ toolName: 'x', onInvokeHandoff: () => {} }).not.toBeInstanceOf(Handoff);
  });
});

describe('the handoffs of an agent', () => {
  test('are agents and handoffs, in the caller`s own array [TOOL-A2] [TOOL-A3]', () => {
    const handoffs = [billing, handoff(billing)] as const;
    const agent = new Agent({ name: 'Desk', handoffs });
    expect(agent.handoffs).toBe(handoffs);
    expect(new Agent({ name: 'Desk' }).handoffs).toEqual([]);
    expect(agent.clone({}).handoffs).toBe(handoffs);
    expect(agent.clone({ handoffs: [] }).handoffs).toEqual([]);
    expect(agent.clone({ handoffDescription: 'x' }).handoffDescription).toBe('x');
  });

  test.each<[string, object, RegExp]>([
    ['an agent', { handoffs: billing }, /agent Desk: the field `handoffs` takes an array .*not an object/],
    ['a name', { handoffs: ['Billing'] }, /`handoffs\[0\]` takes an agent, or a handoff/],
    ['null', { handoffs: null }, /`handoffs`.*null/],
    ['a description that is none', { handoffDescription: 1 }, /`handoffDescription` takes a string/],
  ])('%s is refused [TOOL-A2]', (_, options, message) => {
    expect(() => new Agent({ name: 'Desk', ...options })).toThrow(message);
  });

  test('cycles are built by pushing, and the source of a clone is untouched [TOOL-A4] [TOOL-A19]', () => {
    const a = new Agent({ name: 'A' });
    const b = new Agent({ name: 'B', handoffs: [a] });
    a.handoffs.push(b);
    const copy = a.clone({ handoffs: [] });
    expect([a.handoffs, b.handoffs, copy.handoffs]).toEqual([[b], [a], []]);
  });
});
