import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { SessionOutcomeUnknownError } from './errors.ts';
import { convertJsSdkItems } from './js-sdk-items.ts';
import { MemorySession } from './memory.ts';
import { migrateSession } from './migrate.ts';

const fixture = JSON.parse(readFileSync(new URL('../../test/fixtures/js-sdk-items.json', import.meta.url), 'utf8')) as {
  items: { theirs: { type?: string }; wire: object }[];
};

describe('convertJsSdkItems', () => {
  it.each(fixture.items.map(({ theirs, wire }) => [theirs.type, theirs, wire] as const))(
    'gives back what the API sent: %s [SESS-393]',
    (_type, theirs, wire) => {
      expect(convertJsSdkItems([theirs])).toEqual([wire]);
    },
  );

  it.each(fixture.items.map(({ wire }) => [(wire as { type?: string }).type, wire] as const))(
    'lets wire objects pass: %s [SESS-393]',
    (_type, wire) => {
      expect(convertJsSdkItems([wire])).toEqual([wire]);
    },
  );

  it.each([
    ['a text', { role: 'user', content: 'x' }, { role: 'user', content: 'x' }],
    [
      'parts',
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'x', promptCacheBreakpoint: { mode: 'explicit' } },
          { type: 'input_image', image: 'https://host/x.png', detail: 'low' },
          { type: 'input_image', image: { id: 'file_1' } },
          { type: 'input_file', file: 'data:text/plain;base64,eA==', filename: 'x.txt' },
          { type: 'input_file', file: 'https://host/x.pdf' },
          { type: 'input_file', file: { url: 'https://host/y.pdf' } },
          { type: 'input_file', file: { id: 'file_2' } },
          { type: 'audio', audio: 'AAAA', format: 'wav', transcript: null },
        ],
      },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit' } },
          { type: 'input_image', image_url: 'https://host/x.png', detail: 'low' },
          { type: 'input_image', file_id: 'file_1', detail: 'auto' },
          { type: 'input_file', file_data: 'data:text/plain;base64,eA==', filename: 'x.txt' },
          { type: 'input_file', file_url: 'https://host/x.pdf' },
          { type: 'input_file', file_url: 'https://host/y.pdf' },
          { type: 'input_file', file_id: 'file_2' },
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        ],
      },
    ],
    [
      'an answer',
      {
        role: 'assistant',
        status: 'completed',
        id: 'FAKE_ID',
        content: [{ type: 'output_text', text: 'x', providerData: { annotations: [], logprobs: [] } }],
      },
      {
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'x', annotations: [], logprobs: [] }],
      },
    ],
    [
      'a result of parts',
      {
        type: 'function_call_result',
        callId: 'c',
        name: 'f',
        namespace: 'n',
        status: 'completed',
        output: [{ type: 'input_image', image: 'https://host/x.png' }],
      },
      {
        type: 'function_call_output',
        call_id: 'c',
        status: 'completed',
        output: [{ type: 'input_image', image_url: 'https://host/x.png', detail: 'auto' }],
      },
    ],
    [
      'a result of an older form',
      {
        type: 'function_call_result',
        callId: 'c',
        name: 'f',
        status: 'completed',
        output: { type: 'text', text: 'x' },
      },
      { type: 'function_call_output', call_id: 'c', status: 'completed', output: 'x' },
    ],
    [
      'an image of an older form',
      {
        type: 'function_call_result',
        callId: 'c',
        name: 'f',
        status: 'completed',
        output: { type: 'image', image: { data: 'AAAA', mediaType: 'image/png' } },
      },
      {
        type: 'function_call_output',
        call_id: 'c',
        status: 'completed',
        output: [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' }],
      },
    ],
    [
      'a call inside a program',
      { type: 'function_call', callId: 'c', name: 'f', arguments: '{}', caller: { type: 'program', callerId: 'p' } },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}', caller: { type: 'program', caller_id: 'p' } },
    ],
    [
      'reasoning of another API',
      {
        type: 'reasoning',
        id: 'rs',
        content: [],
        rawContent: [{ type: 'reasoning_text', text: 'x' }],
        providerData: { encryptedContent: 'e' },
      },
      {
        type: 'reasoning',
        id: 'rs',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'x' }],
        encrypted_content: 'e',
      },
    ],
  ])('converts %s [SESS-393]', (_name, theirs, wire) => {
    expect(convertJsSdkItems([theirs])).toEqual([wire]);
  });
});

describe('migrateSession', () => {
  const theirs = { type: 'function_call', callId: 'c', name: 'f', arguments: '{}' };
  const wire = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };

  it('copies all of a history in batches, converting it [SESS-393]', async () => {
    const items = Array.from({ length: 1201 }, () => theirs);
    const from = new MemorySession<object>('a', { items, sessionSettings: { limit: 2 } });
    const to = new MemorySession('a');
    expect(await migrateSession(from, to)).toBe(1201);
    expect(await to.getItems()).toEqual(items.map(() => wire));
  });

  it('copies nothing into a session that holds items, nor into itself [SESS-393]', async () => {
    const from = new MemorySession<object>('a', { items: [theirs] });
    const to = new MemorySession<object>('b', { items: [theirs] });
    await expect(migrateSession(from, to as never)).rejects.toThrow(/holds items already; nothing was copied/);
    await expect(migrateSession(from, from as never)).rejects.toThrow(/two sessions/);
    expect(await to.getItems()).toHaveLength(1);
  });

  it('settles a batch whose answer was lost [SESS-393]', async () => {
    const to = new MemorySession<object>('b');
    const apply = to.applyHistoryTransaction.bind(to);
    let lost = 0;
    to.applyHistoryTransaction = async (operation) => {
      await apply(operation);
      if (lost++ === 0) throw new SessionOutcomeUnknownError('lost', { operation: 'append' });
    };
    expect(await migrateSession(new MemorySession<object>('a', { items: [theirs] }), to as never)).toBe(1);
    expect(await to.getItems()).toEqual([wire]);
    expect(lost).toBe(2);
  });
});
