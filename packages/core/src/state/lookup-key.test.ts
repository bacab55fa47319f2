import { expect, test } from 'vitest';
import { approvalKeyOf, lookupKeyOf, sameLookupKey } from './lookup-key.ts';

test('keys of tools and calls [TOOL-I1]', () => {
  expect(lookupKeyOf({ name: 'f' })).toEqual({ kind: 'bare', name: 'f' });
  expect(lookupKeyOf({ name: 'f', namespace: 'ns' })).toEqual({ kind: 'namespaced', namespace: 'ns', name: 'f' });
  expect(lookupKeyOf({ name: 'f', namespace: { name: 'ns' } })).toEqual({
    kind: 'namespaced',
    namespace: 'ns',
    name: 'f',
  });
  expect(lookupKeyOf({ name: 'f', namespace: 'f' })).toEqual({ kind: 'deferred_top_level', name: 'f' });
  expect(lookupKeyOf({ name: 'f', deferLoading: true })).toEqual({ kind: 'deferred_top_level', name: 'f' });
  expect(lookupKeyOf({ name: '' })).toBeUndefined();
  expect(sameLookupKey({ kind: 'bare', name: 'f' }, { kind: 'deferred_top_level', name: 'f' })).toBe(false);
});

test('no two tools share a key by accident [STATE-141]', () => {
  const keys = [
    lookupKeyOf({ name: 'f' }),
    lookupKeyOf({ name: 'f', namespace: 'ns' }),
    lookupKeyOf({ name: 'f', namespace: 'f' }),
  ];
  expect(keys.map((key) => key && approvalKeyOf(key))).toEqual(['f', 'ns.f', 'deferred_top_level:f']);
});
