import { expect, test } from 'vitest';
import { fillObject } from './fill.ts';

const refund = {
  type: 'object',
  properties: { orderId: { type: 'string' }, amount: { type: 'number' } },
  required: ['orderId', 'amount'],
};
const lamp = { orderId: '1041', total: 34.5 };

test('what is known of another order fills nothing in [MODEL-1304]', () => {
  expect(fillObject(refund, { text: 'refund order 1042', known: [lamp] })).toEqual({
    value: { orderId: '1042' },
    missing: ['amount'],
  });
  expect(fillObject(refund, { text: 'refund order 1041', known: [lamp] }).value).toEqual({
    orderId: '1041',
    amount: 34.5,
  });
  expect(fillObject(refund, { text: 'refund it', known: [lamp] }).value).toEqual({ orderId: '1041', amount: 34.5 });
});
