import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import { callModel } from './call.ts';
import { defineModel } from './define.ts';
import { modelRequest } from '../testing/request.ts';
import { assertResponseStream } from '../testing/response-stream.ts';
import { ScriptedModel } from '../testing/scripted-model.ts';

const words = fc.string({ unit: 'grapheme', maxLength: 40 });
const part = fc.oneof(
  words.map((text) => ({ type: 'output_text', text, annotations: [], logprobs: [] })),
  words.map((refusal) => ({ type: 'refusal', refusal })),
);
const content = fc.array(part, { minLength: 1, maxLength: 3 });
const item = fc.oneof(
  content.map((parts) => ({ type: 'message', role: 'assistant', status: 'completed', content: parts })),
  fc.array(words, { maxLength: 2 }).map((texts) => ({
    type: 'reasoning',
    summary: texts.map((text) => ({ type: 'summary_text', text })),
  })),
  fc.jsonValue().map((args) => ({ type: 'function_call', name: 'f', arguments: JSON.stringify(args) })),
  words.map((input) => ({ type: 'custom_tool_call', name: 'c', input })),
  fc.constant({ type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } }),
);
/** Ids are drawn by a service, never twice. */
const output = fc.array(item, { maxLength: 5 }).map(
  (items) =>
    items.map((each, index) => ({
      ...each,
      id: `i_${index}`,
      call_id: `c_${index}`,
    })) as unknown as ResponseOutputItem[],
);
const chunk = fc.constantFrom(undefined, 1, 2, 7, 'word' as const);

describe('streams that are made of a response', () => {
  it('keep the grammar and end with what the plain call answers, for any output [MODEL-1107] [MODEL#79]', async () => {
    await fc.assert(
      fc.asyncProperty(output, chunk, async (items, size) => {
        const scripted = new ScriptedModel([{ output: items, chunk: size }, { output: items }, { output: items }]);
        const defined = defineModel({ getResponse: (request) => scripted.getResponse(request) });
        for (const model of [scripted, defined]) {
          const events: ResponseStreamEvent[] = [];
          const response = await callModel(model, modelRequest(), (event) => events.push(event));
          assertResponseStream(events);
          expect(response.output).toEqual(items);
        }
      }),
      { numRuns: 200 },
    );
  });
});
