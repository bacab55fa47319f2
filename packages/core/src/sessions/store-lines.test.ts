import { expect, it } from 'vitest';

import { sha256Hex } from '../base/digest.ts';
import { exportLines } from './store-lines.ts';

async function* parts(...texts: readonly (readonly (string | undefined)[])[]) {
  for (const part of texts) yield part.map((text, position) => ({ text, position }));
}

it('writes the stored texts as they are, without what is corrupt, each with its line break [SESS-376]', async () => {
  const stored = ['{"role": "user",  "content": "Gr\\u00fc\\u00dfe", "n": 1.0}', '{"big":12345678901234567890}'];
  const lines: string[] = [];
  const source = parts([stored[0], 'broken', undefined], ['7', stored[1]], []);
  for await (const line of exportLines({ sessionId: 's', createdAt: new Date(0) }, source)) lines.push(line);
  const sha256 = sha256Hex(stored.map((text) => `${text}\n`).join(''));
  expect(lines).toEqual([
    '{"format":"agents-session","version":1,"sessionId":"s","createdAt":"1970-01-01T00:00:00.000Z"}\n',
    ...stored.map((text) => `${text}\n`),
    `{"end":true,"items":2,"sha256":"${sha256}"}\n`,
  ]);
});

it('writes anew what is no single line of JSON [SESS-376]', async () => {
  const lines: string[] = [];
  const source = parts(['{"a":\n1}', '{"b":\r2}']);
  for await (const line of exportLines({ sessionId: 's' }, source)) lines.push(line);
  expect(lines.slice(1, 3)).toEqual(['{"a":1}\n', '{"b":2}\n']);
  expect(JSON.parse(lines[0] ?? '')).toHaveProperty('createdAt', null);
});
