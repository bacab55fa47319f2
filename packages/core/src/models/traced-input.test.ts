import { expect, it } from 'vitest';
import type { AgentInputItem } from '../items/items.ts';
import { tracedInput } from './traced-input.ts';

const image = (data: string): AgentInputItem => ({
  role: 'user',
  content: [
    { type: 'input_text', text: 'See.' },
    { type: 'input_image', image_url: data, detail: 'auto' },
  ],
});

it('shows the size of inline data above 1 KiB and leaves everything else as it is [MODEL-943]', () => {
  const bytes = Buffer.from('x'.repeat(2000)).toString('base64');
  const large = image(`data:image/png;base64,${bytes}`);
  const file: AgentInputItem = {
    type: 'function_call_output',
    call_id: 'c',
    output: [{ type: 'input_file', file_data: `data:application/pdf;base64,${bytes}` }],
  };
  const plain = [
    { role: 'user' as const, content: bytes },
    image('data:image/png;base64,AAAA'),
    image(`https://example.com/${'x'.repeat(2000)}`),
  ];
  expect(tracedInput(plain)).toBe(plain);
  const input = [...plain, large, file];
  const before = structuredClone(input);
  const shown = tracedInput(input);
  expect(shown.slice(0, 3)).toEqual(plain);
  expect(shown[3]).toMatchObject({ content: [{ text: 'See.' }, { image_url: '<image, 2000 bytes>', detail: 'auto' }] });
  expect(shown[4]).toMatchObject({ call_id: 'c', output: [{ file_data: '<file, 2000 bytes>' }] });
  expect(input).toEqual(before);
});
