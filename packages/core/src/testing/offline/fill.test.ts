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

test('what the person said wins over what a tool said [MODEL-1304]', () => {
  const known = [{ orderId: '1042', total: 89, status: 'processing', quantity: 1, price: 5 }];
  const filled = (schema: object, text: string): unknown => fillObject(schema as never, { text, known }).value;
  expect(filled(refund, 'Refund 20 for order 1042')).toEqual({ orderId: '1042', amount: 20 });
  expect(filled(refund, 'Refund $7.50 of it')).toEqual({ orderId: '1042', amount: 7.5 });
  expect(filled(refund, 'Refund 20,50 euros for order 1042')).toEqual({ orderId: '1042', amount: 20.5 });
  expect(filled(refund, 'Refund 1,000 euros for order 1042')).toEqual({ orderId: '1042', amount: 1000 });
  expect(filled(refund, 'Refund order 1042, it broke after 3 days')).toEqual({ orderId: '1042', amount: 89 });
  const change = { type: 'object', properties: { orderId: {}, status: { type: 'string' } }, required: ['status'] };
  expect(filled(change, 'Set the status of order 1042 to on hold.')).toMatchObject({ status: 'on hold' });
  const buy = {
    type: 'object',
    properties: { price: { type: 'number' }, quantity: { type: 'number' }, colour: { type: 'string' } },
    required: ['price', 'quantity'],
  };
  expect(fillObject(buy as never, { text: 'Buy 3 lamps', known: [{ price: 5 }] }).value).toEqual({
    price: 5,
    quantity: 3,
  });
});
