import { describe, expect, it } from 'vitest';
import { FakeOpenAI } from './fake-openai.ts';

const user = (text: string) => ({ type: 'message' as const, role: 'user' as const, content: text });
const many = (count: number) => Array.from({ length: count }, (_, index) => user(`${index}`));

describe('conversations of the fake service', () => {
  it('are made, read, updated and deleted [MODEL-1204]', async () => {
    const client = await new FakeOpenAI().client();
    const made = await client.conversations.create({ metadata: { a: '1' }, items: [user('hi')] });
    expect(made).toMatchObject({ object: 'conversation', metadata: { a: '1' }, id: expect.stringMatching(/^conv_/) });
    expect(await client.conversations.update(made.id, { metadata: { b: '2' } })).toMatchObject({
      metadata: { b: '2' },
    });
    expect(await client.conversations.retrieve(made.id)).toMatchObject({ id: made.id, metadata: { b: '2' } });
    expect(await client.conversations.delete(made.id)).toEqual({
      id: made.id,
      object: 'conversation.deleted',
      deleted: true,
    });
    await expect(client.conversations.retrieve(made.id)).rejects.toMatchObject({ status: 404 });
  });

  it('take at most 20 items at once, give them ids and list them by pages, the newest first unless asked otherwise [MODEL-1204]', async () => {
    const client = await new FakeOpenAI().client({ maxRetries: 0 });
    const { id } = await client.conversations.create();
    await expect(client.conversations.items.create(id, { items: many(21) })).rejects.toMatchObject({
      status: 400,
      code: 'array_above_max_length',
    });
    await client.conversations.items.create(id, { items: many(20) });
    await client.conversations.items.create(id, { items: many(5) });
    const page = await client.conversations.items.list(id);
    expect(page.data).toHaveLength(20);
    expect(page.data[0]).toMatchObject({ content: [{ type: 'input_text', text: '4' }] });
    expect(page.has_more).toBe(true);
    const all = [];
    for await (const item of client.conversations.items.list(id, { order: 'asc', limit: 10 })) all.push(item);
    expect(all).toHaveLength(25);
    expect(new Set(all.map((item) => item.id)).size).toBe(25);
    const [first] = all;
    if (!first?.id) throw new Error('The first item has no id.');
    await client.conversations.items.delete(first.id, { conversation_id: id });
    await expect(client.conversations.items.retrieve(first.id, { conversation_id: id })).rejects.toMatchObject({
      status: 404,
    });
  });

  it('get input and output of a response once it is complete, plain and streamed [MODEL-1204]', async () => {
    const fake = new FakeOpenAI({ steps: ['one', 'two'] });
    const client = await fake.client();
    const { id } = await client.conversations.create();
    const model = 'gpt-5.6-luna';
    await client.responses.create({ model, input: 'first', conversation: id });
    const stream = await client.responses.create({ model, input: 'second', conversation: id, stream: true });
    const seen: number[] = [];
    for await (const event of stream)
      if (event.type === 'response.created') seen.push((await client.conversations.items.list(id)).data.length);
    expect(seen).toEqual([2]);
    const { data } = await client.conversations.items.list(id, { order: 'asc' });
    const texts = data.map((item) => (item as { content: { text: string }[] }).content[0]?.text);
    expect(texts).toEqual(['first', 'one', 'second', 'two']);
  });

  it('refuse a second response meanwhile, a previous response beside, and ids that are not there [MODEL-1204]', async () => {
    const fake = new FakeOpenAI();
    const client = await fake.client({ maxRetries: 0 });
    const { id } = await client.conversations.create();
    const ask = (more: object) => client.responses.create({ model: 'gpt-5.6-luna', input: 'x', ...more });
    fake.add(async () => {
      await expect(ask({ conversation: id })).rejects.toMatchObject({ status: 400, code: 'conversation_locked' });
      return 'done';
    });
    await ask({ conversation: { id } });
    await ask({ conversation: id });
    await expect(ask({ conversation: id, previous_response_id: 'resp_1' })).rejects.toMatchObject({ status: 400 });
    await expect(ask({ conversation: 'conv_none' })).rejects.toMatchObject({ status: 404 });
  });

  it('refuse methods, pages, and items that are none, and know what is not there [MODEL-1204]', async () => {
    const client = await new FakeOpenAI().client({ maxRetries: 0 });
    const { id } = await client.conversations.create({ items: [user('hi')] });
    const one = (await client.conversations.items.list(id)).data[0]?.id ?? '';
    for (const path of ['', `/${id}`, `/${id}/items`, `/${id}/items/${one}`])
      await expect(client.put(`/conversations${path}`)).rejects.toMatchObject({ status: 405 });
    for (const path of [`/${id}/items/none`, `/${id}/things`, `/${id}/items/${one}/more`])
      await expect(client.get(`/conversations${path}`)).rejects.toMatchObject({ status: 404 });
    for (const query of ['limit=0', 'limit=101', 'limit=1.5', 'after=none'])
      await expect(client.get(`/conversations/${id}/items?${query}`)).rejects.toMatchObject({ status: 400 });
    for (const items of [undefined, 'x', [{ type: 'no such item' }]])
      await expect(client.post(`/conversations/${id}/items`, { body: { items } })).rejects.toMatchObject({
        status: 400,
      });
    expect((await client.conversations.items.list(id, { limit: 100 })).data).toHaveLength(1);
    expect(await client.conversations.items.retrieve(one, { conversation_id: id })).toMatchObject({ id: one });
  });
});

describe('compaction of the fake service', () => {
  it('gives the messages of the user and one item for the rest; it needs a model and something to compact', async () => {
    const fake = new FakeOpenAI();
    const client = await fake.client({ maxRetries: 0 });
    const made = await client.responses.compact({
      model: 'gpt-4.1',
      input: [
        user('hi'),
        { type: 'message', role: 'assistant', content: 'hello' },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      ],
    });
    expect(made.object).toBe('response.compaction');
    expect(made.output.map((item) => item.type)).toEqual(['message', 'compaction']);
    const response = await client.responses.create({ model: 'gpt-4.1', input: 'x' });
    const byId = await client.responses.compact({ model: 'gpt-4.1', previous_response_id: response.id });
    expect(byId.output.map((item) => item.type)).toEqual(['message', 'compaction']);
    await expect(client.responses.compact({ model: 'gpt-4.1' })).rejects.toMatchObject({ status: 400 });
    for (const body of [{ input: 'x' }, { model: 'gpt-4.1', previous_response_id: 'resp_none' }])
      await expect(client.responses.compact(body as never)).rejects.toMatchObject({ status: 400 });
    const both = { model: 'gpt-4.1', input: 'y', previous_response_id: response.id } as const;
    const { output, usage } = await client.responses.compact(both);
    expect(output.map((item) => item.type)).toEqual(['message', 'message', 'compaction']);
    expect(usage.input_tokens).toBeGreaterThan(0);
  });
});
