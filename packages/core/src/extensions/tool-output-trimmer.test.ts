import { array, assert, asyncProperty, constant, integer, oneof, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { UserError } from '../base/errors.ts';
import { hasLoneSurrogate } from '../base/json.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ModelInputData } from '../run/options.ts';
import { RunContext } from '../state/context.ts';
import { toolOutputTrimmer } from './index.ts';

const agent = new Agent({ name: 'Desk' });
const context = new RunContext<unknown>(undefined);
type Options = Parameters<typeof toolOutputTrimmer>[0];

const user = (content: string): AgentInputItem => ({ role: 'user', content });
const call = (members: object = {}): AgentInputItem => ({
  type: 'function_call',
  name: 'find',
  call_id: 'c',
  arguments: '{}',
  ...members,
});
const output = (value: unknown, members: object = {}): AgentInputItem =>
  ({ type: 'function_call_output', call_id: 'c', output: value, ...members }) as AgentInputItem;

const filter = async (input: readonly AgentInputItem[], options?: Options): Promise<readonly AgentInputItem[]> => {
  const modelData: ModelInputData = { input, instructions: 'Be brief.' };
  const seen = await toolOutputTrimmer(options)({ modelData, agent, context });
  expect(seen.instructions).toBe('Be brief.');
  return seen.input;
};
/** What becomes of one item in the first of three turns. */
const old = async (
  item: AgentInputItem,
  options?: Options,
  before: AgentInputItem = call(),
): Promise<AgentInputItem> => {
  const input = [user('1'), before, item, user('2'), user('3')];
  const copy = structuredClone(input);
  const seen = await filter(input, options);
  expect(input).toEqual(copy);
  expect(seen.map((one, index) => index === 2 || one === input[index])).toEqual([true, true, true, true, true]);
  const result = seen[2] as AgentInputItem;
  // A second time changes nothing.
  expect(await filter(seen, options)).toEqual(seen);
  return result;
};
const outputOf = async (value: unknown, options?: Options): Promise<unknown> =>
  ((await old(output(value), options)) as { output: unknown }).output;

describe('which outputs', () => {
  it('are shortened: those before the last turns; the others are the same objects [TOOL-T2, T8]', async () => {
    const long = 'x'.repeat(4000);
    const turn = (n: number): AgentInputItem[] => [
      user(String(n)),
      call({ call_id: `c${n}` }),
      output(long, { call_id: `c${n}` }),
      { role: 'assistant', content: 'ok' },
    ];
    const input = [...turn(1), ...turn(2), ...turn(3)];
    const seen = await filter(input);
    expect(seen.map((item, index) => item === input[index])).toEqual(input.map((_, index) => index !== 2));
    expect(seen[2]).toEqual(
      output(`[Trimmed: find output — 4000 chars → 200 char preview]\n${'x'.repeat(200)}...`, { call_id: 'c1' }),
    );
    expect((await filter(input, { recentTurns: 1 })).filter((item, index) => item !== input[index])).toHaveLength(2);
    expect(await filter(input, { recentTurns: 3 })).toEqual(input);
  });

  it('stay while there are fewer messages of the user than recent turns [TOOL-T2]', async () => {
    const input = [call(), output('x'.repeat(4000)), user('1')];
    expect(await filter(input)).toBe(input);
    expect(await filter([], { recentTurns: 1 })).toEqual([]);
    // With exactly as many, what stands before the first of them is old.
    expect((await filter(input, { recentTurns: 1 }))[1]).not.toBe(input[1]);
  });

  it.each<[Options, object, boolean]>([
    [{ trimmableTools: 'find' }, {}, true],
    [{ trimmableTools: 'crm.find' }, { namespace: 'crm' }, true],
    [{ trimmableTools: ['x', 'find'] }, { namespace: 'crm' }, true],
    [{ trimmableTools: new Set(['crm.find']) }, { namespace: 'crm' }, true],
    [{ trimmableTools: ['crm.find'] }, {}, false],
    [{ trimmableTools: 'fin' }, {}, false],
    [{ trimmableTools: [] }, {}, false],
    [{ trimmableTools: ['unknown_tool'] }, { call_id: 'other' }, false],
    [{}, { namespace: 'crm' }, true],
  ])(
    'are chosen by the names of tools: %j for a call with %j [TOOL-T4, T10]',
    async (options, members, isShortened) => {
      const item = output('x'.repeat(900));
      expect((await old(item, options, call(members))) !== item).toBe(isShortened);
    },
  );

  it('say their tool, with its namespace, or that it is not known [TOOL-T3, T4]', async () => {
    const named = async (before: AgentInputItem): Promise<string> =>
      ((await old(output('x'.repeat(900)), {}, before)) as { output: string }).output;
    expect(await named(call({ namespace: 'crm' }))).toMatch(/^\[Trimmed: crm\.find output — 900 chars/);
    expect(await named(call({ call_id: 'other' }))).toMatch(/^\[Trimmed: unknown_tool output — /);
    expect(await named({ type: 'custom_tool_call', name: 'sql', call_id: 'c', input: '' })).toMatch(
      /^\[Trimmed: sql output — /,
    );
    const custom = { type: 'custom_tool_call_output', call_id: 'c', output: 'x'.repeat(900) } as const;
    expect(await old(custom)).not.toBe(custom);
  });
});

describe('an output that is text', () => {
  it.each<[number, Options, string | undefined]>([
    [501, { previewChars: 20 }, `[Trimmed: find output — 501 chars → 20 char preview]\n${'x'.repeat(20)}...`],
    [500, { previewChars: 20 }, undefined],
    [501, { previewChars: 0 }, '[Trimmed: find output — 501 chars → 0 char preview]\n...'],
    [12, { maxOutputChars: 10, previewChars: 200 }, undefined],
    [54, { maxOutputChars: 10, previewChars: 0 }, undefined],
    [55, { maxOutputChars: 10, previewChars: 0 }, '[Trimmed: find output — 55 chars → 0 char preview]\n...'],
  ])(
    'of %i characters becomes a header and its beginning, if that is shorter: %j [TOOL-T3, T9]',
    async (length, options, short) => {
      const text = 'x'.repeat(length);
      expect(await outputOf(text, options)).toBe(short ?? text);
    },
  );

  it('is never cut inside a character of two units [TOOL-T7]', async () => {
    const text = '😀'.repeat(300);
    expect(await outputOf(text, { previewChars: 5 })).toBe(
      '[Trimmed: find output — 600 chars → 4 char preview]\n😀😀...',
    );
    expect(await outputOf(text, { previewChars: 1 })).toBe('[Trimmed: find output — 600 chars → 0 char preview]\n...');
    expect(await outputOf(text, { previewChars: 4 })).toMatch(/\n😀😀\.\.\.$/);
  });

  it('is shortened once, but also when it only looks as if it had been [TOOL-T3, T5]', async () => {
    const short = (await outputOf('x'.repeat(900), { maxOutputChars: 10, previewChars: 30 })) as string;
    expect(await outputOf(short, { maxOutputChars: 10, previewChars: 1 })).toBe(short);
    const fake = `[Trimmed: find output — 900 chars → 30 char preview]\n${'x'.repeat(5000)}`;
    expect(await outputOf(fake)).toMatch(/^\[Trimmed: find output — 5053 chars → 200 char preview\]/);
  });

  it.each([null, undefined, 5, { text: 'x'.repeat(900) }])('is not %j: that stays [TOOL-T5]', async (value) => {
    expect(await outputOf(value)).toEqual(value);
  });
});

describe('an output of parts', () => {
  const text = (length: number, letter = 'x'): object => ({ type: 'input_text', text: letter.repeat(length) });
  const image = { type: 'input_image', image_url: `data:${'y'.repeat(995)}`, detail: 'auto' };
  const file = { type: 'input_file', file_data: 'z'.repeat(1000), filename: 'a' };
  const head = (rest: string): object => ({ type: 'input_text', text: `[Trimmed: find output — ${rest}]` });

  it.each<[string, object[], object[]]>([
    [
      'one text',
      [text(900)],
      [head('900 chars → 23 char preview'), { type: 'input_text', text: `${'x'.repeat(20)}...` }],
    ],
    [
      'texts, within one budget',
      [text(10), text(600, 'w'), text(600, 'v')],
      [head('1210 chars → 23 char preview'), text(10), { type: 'input_text', text: `${'w'.repeat(10)}...` }],
    ],
    ['a text and an image', [text(10), image], [head('1014 chars → 10 char preview; dropped 1 input_image'), text(10)]],
    [
      'images and files',
      [image, file, image],
      [head('3009 chars → 0 char preview; dropped 1 input_file, 2 input_image')],
    ],
    ['texts that fit exactly', [text(20), text(600)], [head('620 chars → 20 char preview'), text(20)]],
  ])('is a valid list again: %s [TOOL-T5]', async (_, parts, short) => {
    expect(await outputOf(parts, { previewChars: 20 })).toEqual(short);
  });

  it.each<[string, unknown[]]>([
    ['short ones', [text(400), { type: 'input_image', file_id: 'f' }]],
    ['no parts', []],
    ['parts of other kinds', [text(900), { type: 'output_text', text: 'x' }]],
    ['parts with strange members', [{ ...text(900), annotations: [] }]],
    ['parts that are none', [text(900), 'x', null]],
    ['a text that is none', [{ type: 'input_text', text: 5 }, text(900)]],
    ['a kind that objects have by nature', [{ type: 'constructor' }, text(900)]],
  ])('stays as it is: %s [TOOL-T5]', async (_, parts) => {
    expect(await outputOf(parts)).toBe(parts);
  });

  it('is shortened only if that is shorter, and not because it begins like a shortened one [TOOL-T5]', async () => {
    const parts = [text(11)];
    expect(await outputOf(parts, { maxOutputChars: 10 })).toBe(parts);
    const fake = [head('900 chars → 3 char preview'), text(900)];
    expect(await outputOf(fake)).not.toBe(fake);
  });
});

describe('what a tool search loaded', () => {
  const parameters = {
    type: 'object',
    title: 'T'.repeat(300),
    description: 'p'.repeat(300),
    properties: {
      description: { type: 'string', description: 'q'.repeat(300), enum: ['description', 'b'] },
      title: { type: 'object', properties: { x: { type: 'integer', examples: [1], default: { title: 1 } } } },
      either: { anyOf: [{ type: 'string', title: 'a' }, { $ref: '#/$defs/examples' }] },
    },
    $defs: { examples: { type: 'array', items: { const: { description: 'k' }, $comment: 'c' } } },
    required: ['description'],
    additionalProperties: false,
  };
  const bare = {
    type: 'object',
    properties: {
      description: { type: 'string', enum: ['description', 'b'] },
      title: { type: 'object', properties: { x: { type: 'integer', default: { title: 1 } } } },
      either: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/examples' }] },
    },
    $defs: { examples: { type: 'array', items: { const: { description: 'k' } } } },
    required: ['description'],
    additionalProperties: false,
  };
  const tool = { type: 'function', name: 'f', description: 'd'.repeat(900), strict: true, parameters };
  const short = { ...tool, description: `${'d'.repeat(20)}...`, parameters: bare };
  const found = (tools: unknown): AgentInputItem =>
    ({ type: 'tool_search_output', call_id: 'c', status: 'completed', execution: 'server', tools }) as AgentInputItem;

  it('says less and means the same: names, types, required and enums stay [TOOL-T6]', async () => {
    expect(await old(found([tool]), { previewChars: 20 })).toEqual(found([short]));
    // With its dots it would not be shorter.
    const barely = { ...short, description: 'd'.repeat(23) };
    expect(await old(found([{ ...barely, parameters }]), { previewChars: 20 })).toEqual(found([barely]));
    const namespace = { type: 'namespace', name: 'n', description: 'n'.repeat(24), tools: [tool, null] };
    expect(await old(found([namespace]), { previewChars: 20 })).toEqual(
      found([{ ...namespace, description: `${'n'.repeat(20)}...`, tools: [short, null] }]),
    );
  });

  it('stays when it is short, or not among the tools to shorten [TOOL-T4, T6]', async () => {
    for (const [item, options] of [
      [found([{ ...tool, description: 'd', parameters: {} }]), {}],
      [found([tool]), { trimmableTools: 'find' }],
      [found('x'.repeat(900)), {}],
    ] as const)
      expect(await old(item, options)).toBe(item);
    expect(await old(found([tool]), { trimmableTools: 'tool_search' })).not.toEqual(found([tool]));
  });
});

describe('options', () => {
  it.each<[unknown, string]>([
    [{ recentTurns: 0 }, "'recentTurns' of toolOutputTrimmer must be an integer of at least 1"],
    [{ maxOutputChars: 0.5 }, "'maxOutputChars' of toolOutputTrimmer must be an integer of at least 1"],
    [{ previewChars: -1 }, "'previewChars' of toolOutputTrimmer must be an integer of at least 0"],
    [
      { trimmableTools: 5 },
      "'trimmableTools' of toolOutputTrimmer must be the name of a tool or names of tools, not 5",
    ],
    [{ trimmableTools: ['a', 5] }, 'not a list of something else'],
    [{ max_output_chars: 5 }, "Unknown option 'max_output_chars' of toolOutputTrimmer. Did you mean 'maxOutputChars'?"],
  ])('%j are refused [TOOL-T1, Z11]', (options, text) => {
    expect(() => toolOutputTrimmer(options as Options)).toThrow(UserError);
    expect(() => toolOutputTrimmer(options as Options)).toThrow(text);
  });
});

it('whatever outputs are, shortening them twice is shortening them once, and never makes them longer [TOOL-T3, T5, T7]', async () => {
  const texts = oneof(
    string({ unit: 'binary', maxLength: 200 }),
    constant('[Trimmed: find output — 60 chars → 5 char preview]\nabcde...'),
  );
  const part = oneof(
    texts.map((text) => ({ type: 'input_text', text })),
    texts.map((id) => ({ type: 'input_image', file_id: id })),
  );
  await assert(
    asyncProperty(
      oneof(texts, array(part, { maxLength: 4 })),
      integer({ min: 1, max: 100 }),
      integer({ min: 0, max: 60 }),
      async (value, maxOutputChars, previewChars) => {
        const short = await outputOf(value, { maxOutputChars, previewChars });
        expect(JSON.stringify(short).length).toBeLessThanOrEqual(JSON.stringify(value).length + 60);
        // No half of a pair that was not there before.
        const texts = [short]
          .flat()
          .map((one) => (typeof one === 'string' ? one : ((one as { text?: string }).text ?? '')));
        expect(texts.filter(hasLoneSurrogate)).toEqual([]);
      },
    ),
    { numRuns: 300 },
  );
});
