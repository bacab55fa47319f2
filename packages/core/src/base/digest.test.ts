import * as fc from 'fast-check';
import { expect, it } from 'vitest';

import { portableRunningSha256, runningSha256, sha256Hex } from './digest.ts';

it('hashes texts one after the other as their whole, with and without the hash of the runtime', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (texts) => {
      for (const make of [runningSha256, portableRunningSha256]) {
        const hash = make();
        for (const text of texts) hash.update(text);
        expect(hash.hex()).toBe(sha256Hex(texts.join('')));
      }
    }),
  );
});
