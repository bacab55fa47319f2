import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { UserError } from '../base/errors.ts';
import { Agent } from './agent.ts';
import { tool } from './tool.ts';

describe('the list of callers', () => {
  test.each([
    [[], ': it is empty; `isEnabled: false` hides a tool from everybody.'],
    [['direct', 'direct'], ': it names one twice.'],
    [['model'], ': it holds something else.'],
    ['direct', ', not a string.'],
    [null, ', not null.'],
  ])('is refused as %j, with the words that are taken and what is wrong [TOOL-F7]', (allowedCallers, problem) => {
    const words = ` must be a list of 'direct', 'programmatic' or both${problem}`;
    const made = tool({ name: 'find', execute: () => '' });
    for (const make of [
      () => tool({ name: 'find', allowedCallers: allowedCallers as never, execute: () => '' }),
      () => made.copyWith({ allowedCallers: allowedCallers as never }),
    ]) {
      expect(make).toThrow(UserError);
      expect(make).toThrow(/^Option 'allowedCallers' of tool find/);
      expect(make).toThrow(words);
    }
  });
});

describe('a schema of the result', () => {
  test('is no tool of an agent, which returns a text [TOOL-F8]', () => {
    const made = new Agent({ name: 'Stock' }).asTool({ toolName: 'stock' });
    expect(() => made.copyWith({ outputSchema: z.object({ n: z.number() }) })).toThrow(
      'tool stock: a tool made by `asTool` returns a text and takes no `outputSchema`. Give the agent an `outputType`.',
    );
  });
});
