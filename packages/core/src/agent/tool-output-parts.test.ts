import { describe, expect, test } from 'vitest';
import { UserError } from '../base/errors.ts';
import { toolOutput } from './tool-output-helpers.ts';
import { toolOutputOnWire } from './tool-output-parts.ts';

const bytes = new Uint8Array([137, 80, 78, 71]);
const url = 'https://example.com/a.png';

describe('what the model sees of', () => {
  test.each<[string, unknown, unknown]>([
    ['a text part', { type: 'text', text: '' }, [{ type: 'input_text', text: '' }]],
    ['an image by URL', { type: 'image', image_url: url }, [{ type: 'input_image', image_url: url }]],
    [
      'an image by id with detail',
      { type: 'image', file_id: 'f1', detail: 'low' },
      [{ type: 'input_image', file_id: 'f1', detail: 'low' }],
    ],
    [
      'members that are null or undefined, and unknown ones',
      { type: 'image', image_url: url, file_id: null, detail: undefined, alt: 'x', secret: 1 },
      [{ type: 'input_image', image_url: url }],
    ],
    [
      'a file with data and name [TOOL-R22]',
      { type: 'file', file_data: 'QUJD', filename: 'a.txt' },
      [{ type: 'input_file', file_data: 'QUJD', filename: 'a.txt' }],
    ],
    ['a file by URL', { type: 'file', file_url: url, filename: null }, [{ type: 'input_file', file_url: url }]],
    ['a file by id', { type: 'file', file_id: 'f2' }, [{ type: 'input_file', file_id: 'f2' }]],
    [
      'a list of parts, in order [TOOL-R17] [TOOL-R4]',
      [
        { type: 'text', text: 'a' },
        { type: 'image', file_id: 'f1' },
      ],
      [
        { type: 'input_text', text: 'a' },
        { type: 'input_image', file_id: 'f1' },
      ],
    ],
  ])('%s [TOOL-R2]', (_, value, wire) => {
    expect(toolOutputOnWire(value)).toEqual(wire);
  });

  test.each<[string, unknown, unknown]>([
    ['imageUrl', { type: 'image', imageUrl: url }, { type: 'input_image', image_url: url }],
    ['fileId', { type: 'image', fileId: 'f1' }, { type: 'input_image', file_id: 'f1' }],
    ['image as URL', { type: 'image', image: url }, { type: 'input_image', image_url: url }],
    ['image as { url }', { type: 'image', image: { url } }, { type: 'input_image', image_url: url }],
    ['image as { fileId }', { type: 'image', image: { fileId: 'f1' } }, { type: 'input_image', file_id: 'f1' }],
    [
      'image as bytes',
      { type: 'image', image: { data: bytes, mediaType: 'image/webp' }, detail: 'high' },
      { type: 'input_image', image_url: 'data:image/webp;base64,iVBORw==', detail: 'high' },
    ],
    [
      'image as bytes of no type',
      { type: 'image', image: { data: bytes } },
      { type: 'input_image', image_url: 'data:image/png;base64,iVBORw==' },
    ],
    [
      'image as base64',
      { type: 'image', image: { data: 'iVBORw==', mediaType: 'image/gif' } },
      { type: 'input_image', image_url: 'data:image/gif;base64,iVBORw==' },
    ],
    [
      'image as a data URL',
      { type: 'image', image: { data: 'data:image/gif;base64,AA==' } },
      { type: 'input_image', image_url: 'data:image/gif;base64,AA==' },
    ],
    ['fileData', { type: 'file', fileData: 'QUJD' }, { type: 'input_file', file_data: 'QUJD' }],
    ['fileUrl', { type: 'file', fileUrl: url }, { type: 'input_file', file_url: url }],
    ['fileId of a file', { type: 'file', fileId: 'f1' }, { type: 'input_file', file_id: 'f1' }],
    ['file as URL', { type: 'file', file: url }, { type: 'input_file', file_url: url }],
    ['file as base64', { type: 'file', file: 'QUJD' }, { type: 'input_file', file_data: 'QUJD' }],
    [
      'file as { url, filename }',
      { type: 'file', file: { url, filename: 'a.pdf' } },
      { type: 'input_file', file_url: url, filename: 'a.pdf' },
    ],
    [
      'file as bytes of no type',
      { type: 'file', file: { data: bytes, filename: 'x' } },
      { type: 'input_file', file_data: 'data:application/octet-stream;base64,iVBORw==', filename: 'x' },
    ],
    ['file as { id }', { type: 'file', file: { id: 'f1' } }, { type: 'input_file', file_id: 'f1' }],
  ])('other spellings: %s [TOOL-R3]', (_, value, part) => {
    expect(toolOutputOnWire(value)).toEqual([part]);
  });

  const throwing = {
    type: 'text',
    get text(): string {
      throw new Error('secret');
    },
  };
  test.each<[string, unknown, string]>([
    ['a text part without text [TOOL-R16]', { type: 'text' }, '{"type":"text"}'],
    [
      'a list with one member that is no part [TOOL-R18] [TOOL-R4]',
      [{ type: 'text', text: 'a' }, 3],
      '[{"type":"text","text":"a"},3]',
    ],
    [
      'an image with a wrong detail [TOOL-R19]',
      { type: 'image', image_url: 'data:x', detail: 'huge' },
      '{"type":"image","image_url":"data:x","detail":"huge"}',
    ],
    ['an image from nowhere', { type: 'image', detail: 'low' }, '{"type":"image","detail":"low"}'],
    [
      'an image with a member of another kind',
      { type: 'image', image_url: url, file_id: 5 },
      `{"type":"image","image_url":"${url}","file_id":5}`,
    ],
    ['an image of no known form', { type: 'image', image: { path: 'x' } }, '{"type":"image","image":{"path":"x"}}'],
    ['a file without a source', { type: 'file', filename: 'a' }, '{"type":"file","filename":"a"}'],
    [
      'a file whose name is none',
      { type: 'file', file_id: 'f', filename: 7 },
      '{"type":"file","file_id":"f","filename":7}',
    ],
    ['an object without type', { text: 'a' }, '{"text":"a"}'],
    ['an object of another type', { type: 'video', url }, `{"type":"video","url":"${url}"}`],
    ['a list in a list', [[{ type: 'text', text: 'a' }]], '[[{"type":"text","text":"a"}]]'],
    ['an empty list', [], '[]'],
    ['a date [TOOL-R21]', new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['any other object [TOOL-R23]', { temp: 21 }, '{"temp":21}'],
    ['what throws while it is read', throwing, '[value without a JSON form]'],
  ])('%s is its text, as a whole [TOOL-R5]', (_, value, text) => {
    expect(toolOutputOnWire(value)).toBe(text);
  });

  test('a value that changes later is what it was [TOOL-R10]', () => {
    const value = [{ type: 'text', text: 'before' }];
    const wire = toolOutputOnWire(value);
    for (const part of value) part.text = 'after';
    value.push({ type: 'text', text: 'more' });
    expect(wire).toEqual([{ type: 'input_text', text: 'before' }]);
  });

  test('many bytes', () => {
    const many = new Uint8Array(100_001).fill(255);
    const [part] = toolOutputOnWire({ type: 'file', file: { data: many } }) as { file_data: string }[];
    const { file_data: data = '' } = part ?? {};
    expect(data).toBe(`data:application/octet-stream;base64,${Buffer.from(many).toString('base64')}`);
  });
});

describe('toolOutput', () => {
  test('makes parts that the model sees as such [TOOL-R2]', () => {
    expect(toolOutput.text('a')).toEqual({ type: 'text', text: 'a' });
    expect(toolOutput.image(url, { detail: 'auto' })).toEqual({ type: 'image', image_url: url, detail: 'auto' });
    expect(toolOutput.image(new URL(url))).toEqual({ type: 'image', image_url: url });
    expect(toolOutput.image({ fileId: 'f1' })).toEqual({ type: 'image', file_id: 'f1' });
    expect(toolOutput.file(url, { filename: 'a.pdf' })).toEqual({ type: 'file', file_url: url, filename: 'a.pdf' });
    expect(toolOutput.file({ fileId: 'f1' })).toEqual({ type: 'file', file_id: 'f1' });
    for (const made of [toolOutput.text('a'), toolOutput.image(bytes), toolOutput.file(bytes)])
      expect(toolOutputOnWire(made)).toMatchObject([{ type: `input_${made.type}` }]);
  });

  test('makes data URLs of bytes and base64 [TOOL-R3]', () => {
    expect(toolOutput.image(bytes).image_url).toBe('data:image/png;base64,iVBORw==');
    expect(toolOutput.image('iVBORw==', { mediaType: 'image/gif' }).image_url).toBe('data:image/gif;base64,iVBORw==');
    expect(toolOutput.image('data:image/gif;base64,AA==').image_url).toBe('data:image/gif;base64,AA==');
    expect(toolOutput.file(bytes, { mediaType: 'text/csv', filename: 'a.csv' })).toEqual({
      type: 'file',
      file_data: 'data:text/csv;base64,iVBORw==',
      filename: 'a.csv',
    });
    expect(toolOutput.file('data:text/plain,hi')).toEqual({ type: 'file', file_data: 'data:text/plain,hi' });
  });

  test.each<[string, () => unknown, RegExp]>([
    ['no text', () => toolOutput.text(5 as never), /toolOutput\.text takes a string, not 5/],
    ['nothing', () => toolOutput.image(undefined as never), /toolOutput\.image takes a URL, .* not undefined/],
    ['an empty text', () => toolOutput.image(''), /toolOutput\.image takes/],
    ['an object that is no source', () => toolOutput.file({ id: 'x' } as never), /toolOutput\.file takes/],
    ['a wrong detail', () => toolOutput.image(url, { detail: 'huge' as never }), /'detail' of toolOutput\.image/],
    [
      'an unknown option',
      () => toolOutput.file(url, { fileName: 'x' } as never),
      /'fileName' of toolOutput\.file.*'filename'/,
    ],
  ])('refuses %s [TOOL-Z11]', (_, make, message) => {
    expect(make).toThrow(UserError);
    expect(make).toThrow(message);
  });
});
