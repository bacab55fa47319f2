import { describe, expect, it } from 'vitest';
import { compactedItems } from './compaction-output.ts';

const message = (...content: unknown[]) => ({ type: 'message', role: 'user', content });
const image = (members: object) => ({ type: 'input_image', ...members });
const file = (members: object) => ({ type: 'input_file', ...members });

describe('a part of a message that the service gave', () => {
  it.each([
    [
      image({ image_url: 'https://x/y.png', file_id: 'f', detail: 'low', extra: 1 }),
      image({ image_url: 'https://x/y.png', detail: 'low' }),
    ],
    [image({ image_url: null, file_id: 'f', detail: null }), image({ file_id: 'f' })],
    [image({ image_url: '', file_id: 'f' }), image({ file_id: 'f' })],
    [
      file({ file_data: 'data:x', file_url: 'https://x', file_id: 'f', filename: 'a.pdf', detail: 'high', extra: 1 }),
      file({ file_data: 'data:x', filename: 'a.pdf', detail: 'high' }),
    ],
    [file({ file_data: null, file_url: 'https://x', file_id: 'f' }), file({ file_url: 'https://x' })],
    [file({ file_data: '', file_url: null, file_id: 'f', filename: null }), file({ file_id: 'f' })],
    [
      { type: 'input_text', text: 'hi', extra: 1 },
      { type: 'input_text', text: 'hi', extra: 1 },
    ],
  ])('keeps one source and what belongs to it: %o [SESS-314]', (given, stored) => {
    expect(compactedItems([message('text', given)])).toEqual([message('text', stored)]);
    // A message may leave out that it is one.
    const { type: _, ...bare } = message(given);
    expect(compactedItems([bare])).toEqual([{ role: 'user', content: [stored] }]);
  });

  it.each([
    image({ image_url: '', file_id: null, detail: 'low' }),
    image({ file_data: 'data:x' }),
    file({ filename: 'a.pdf' }),
    file({ image_url: 'https://x/y.png' }),
  ])('is refused without a source: %o [SESS-314]', (part) => {
    expect(() => compactedItems([message(part)])).toThrow(/a part input_(?:image|file) with none of/u);
  });
});

it('keeps the text of a user message that has no parts, and the ids of what no assistant said [SESS-314]', () => {
  const output = [
    { type: 'message', id: 'msg_1', role: 'user', content: 'hi' },
    { type: 'compaction', id: 'cmp_1', encrypted_content: 'short' },
  ];
  expect(compactedItems([...output, { id: 'msg_2', role: 'assistant', content: 'x' }])).toEqual([
    ...output,
    { role: 'assistant', content: 'x' },
  ]);
});
