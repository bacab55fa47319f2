import type { MaybePromise } from '../../agent/tool.ts';
import type { ResponseFunctionToolCall, ResponseStreamEvent } from '../../items/wire.ts';
import type { Model, ModelRequest, ModelResponse, ResponseMetadata } from '../../models/model.ts';
import { jsonSchema } from '../../agent/schema.ts';
import { tool } from '../../agent/tool.ts';
import { reasoning, text, toolCall } from '../builders.ts';
import { modelRequest } from '../request.ts';
import { assertResponseStream } from '../response-stream.ts';
import type { ModelStep } from '../script.ts';
import { check, contractCase, rejection, same } from './case.ts';
import type { ContractCase } from './case.ts';

/** Gives a model that answers with these steps: text, or lists of output items. */
export type MakeModel = (steps: readonly ModelStep[]) => MaybePromise<Model>;

/**
 * What every model must do, as cases for any test runner.
 * @example
 * ```ts
 * for (const c of modelContract((steps) => new ScriptedModel(steps))) it(c.title, (t) => c.run(t));
 * ```
 */
export function modelContract(make: MakeModel): ContractCase[] {
  return cases.map(([id, title, body]) => contractCase(id, title, () => body(make)));
}

const cases: readonly [id: string, title: string, body: (make: MakeModel) => Promise<void>][] = [
  ['MODEL-101', 'answers a plain call with text, and counts it as one request', plainText],
  ['MODEL-106', 'streams events in order, to a terminal event and nothing after it', streamGrammar],
  ['MODEL-106-b', 'streams what it answers plainly', sameInBothForms],
  ['MODEL-105', 'gives every tool call a call id of its own', callIds],
  ['MODEL-107', 'returns at most what the type of metadata has', metadata],
  ['MODEL-102', 'ignores members of the request that it does not know, and changes none', foreignMembers],
  ['MODEL-120', 'sends nothing once the signal has fired', abortedBefore],
  ['MODEL-121', 'ends a stream that is aborted with an error, never as if it were complete', abortedWithin],
  ['MODEL-122', 'can be left early, and asked again', leftEarly],
];

async function plainText(make: MakeModel): Promise<void> {
  const response = await (await make(['Hello there.'])).getResponse(modelRequest());
  same(textOf(response), 'Hello there.', 'text');
  same(response.usage.requests, 1, 'usage.requests');
}

async function streamGrammar(make: MakeModel): Promise<void> {
  const steps = [
    'Hello there, friend.',
    [text('Wait.'), toolCall('lookup', { id: '7' }), toolCall('lookup', { id: '8' })],
    [reasoning('Hm.'), text('Done.')],
  ];
  const model = await make(steps);
  for (const _ of steps) {
    const { events } = await read(model, withTool());
    assertResponseStream(events);
    same(events.at(-1)?.type, 'response.completed', 'last event');
  }
}

async function sameInBothForms(make: MakeModel): Promise<void> {
  const step = [text('Wait.'), toolCall('lookup', { id: '7' })];
  const plain = await (await make([step])).getResponse(withTool());
  const { events } = await read(await make([step]), withTool());
  const last = events.at(-1);
  const streamed = last?.type === 'response.completed' ? last.response.output : [];
  same(streamed.map(essence), plain.output.map(essence), 'streamed output');
}

async function callIds(make: MakeModel): Promise<void> {
  const model = await make([
    [toolCall('lookup', { id: '7' }), toolCall('lookup', { id: '8' })],
    [toolCall('lookup', { id: '9' })],
  ]);
  const ids: string[] = [];
  for (let call = 0; call < 2; call++) {
    const { output } = await model.getResponse(withTool());
    ids.push(
      ...output
        .filter((item): item is ResponseFunctionToolCall => item.type === 'function_call')
        .map((item) => item.call_id),
    );
  }
  check(
    ids.length === 3 && ids.every((id) => typeof id === 'string' && id !== ''),
    `three call ids that are not empty, got ${JSON.stringify(ids)}`,
  );
  same(new Set(ids).size, 3, 'number of different call ids');
}

async function metadata(make: MakeModel): Promise<void> {
  const { returned } = await read(await make(['Hello.']), modelRequest());
  const unknown = Object.keys(returned ?? {}).filter((key) => !['requestId', 'rawUsage', 'usage'].includes(key));
  same(unknown, [], 'unknown metadata');
  check(returned?.rawUsage === undefined, 'no raw usage without preserveRawUsage');
}

async function foreignMembers(make: MakeModel): Promise<void> {
  const request = { ...withTool(), futureMember: true } as ModelRequest;
  const before = JSON.stringify([request.input, request.modelSettings]);
  await (await make(['Hello.'])).getResponse(request);
  same(JSON.stringify([request.input, request.modelSettings]), before, 'request after the call');
}

async function abortedBefore(make: MakeModel): Promise<void> {
  const model = await make(['Hello.', 'Hello.']);
  const request = modelRequest({ signal: AbortSignal.abort() });
  await rejection(() => model.getResponse(request), 'a plain call with an aborted signal');
  await rejection(() => read(model, request), 'a streamed call with an aborted signal');
}

async function abortedWithin(make: MakeModel): Promise<void> {
  const abort = new AbortController();
  const model = await make(['one two three four five six']);
  await rejection(
    () => read(model, modelRequest({ signal: abort.signal }), () => abort.abort()),
    'a stream that is aborted at its first event',
  );
}

async function leftEarly(make: MakeModel): Promise<void> {
  const model = await make(['one two three', 'again']);
  for await (const _ of model.streamResponse(modelRequest())) break;
  same(textOf(await model.getResponse(modelRequest())), 'again', 'text of the next call');
}

async function read(
  model: Model,
  request: ModelRequest,
  onFirst?: () => void,
): Promise<{ events: ResponseStreamEvent[]; returned: ResponseMetadata | undefined }> {
  const stream = model.streamResponse(request);
  const events: ResponseStreamEvent[] = [];
  for (;;) {
    const step = await stream.next();
    if (step.done === true) return { events, returned: step.value ?? undefined };
    events.push(step.value);
    if (events.length === 1) onFirst?.();
  }
}

function withTool(): ModelRequest {
  const lookup = tool({
    name: 'lookup',
    description: 'Looks up.',
    parameters: jsonSchema({
      type: 'object',
      properties: { id: { type: 'string' } },
      required: ['id'],
      additionalProperties: false,
    }),
    execute: () => '',
  });
  return modelRequest({ tools: [lookup] });
}

function textOf(response: ModelResponse): string {
  const message = response.output.find((item) => item.type === 'message');
  return message?.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('') ?? '';
}

/** Of an item, what does not depend on the ids that a service draws. */
function essence(item: ModelResponse['output'][number]): unknown {
  if (item.type === 'function_call') return [item.type, item.name, item.arguments];
  return item.type === 'message'
    ? [item.type, item.content.map((part) => (part.type === 'output_text' ? part.text : part.refusal))]
    : item.type;
}
