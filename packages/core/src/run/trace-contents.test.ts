import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent } from '../index.ts';
import type { Span } from '../index.ts';
import type { ResponseOutputItem } from '../items/wire.ts';
import { OpenAIResponsesModel } from '../openai/index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { FakeOpenAI, InMemoryTraceProcessor, ScriptedModel, text } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import type { SpanType } from '../tracing.ts';

let recorder: InMemoryTraceProcessor;
beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(resetDefaults);

const wiresOf = (type: SpanType): (Record<string, unknown> | undefined)[] =>
  recorder.spans.filter((span) => span.type === type).map((span) => span.toJSON()?.span_data);

bothForms((runForm, form) => {
  describe(`what spans hold (${form})`, () => {
    it('settings of a model: all that a trace may show, unset ones as null, never extras; no metadata without data [TRACE-S10]', async () => {
      const modelSettings = {
        temperature: 0.2,
        maxTokens: 9,
        metadata: { tenant: 'marker' },
        extraHeaders: { 'x-marker': 'marker-1' },
        extraBody: { marker: 2 },
        extraQuery: { marker: '3' },
        extraArgs: { marker: 4 },
      };
      const agent = (): Agent =>
        new Agent({ name: 'A', model: new ScriptedModel(['hi'], { trace: true }), modelSettings });
      await runForm(agent(), 'go');
      await runForm(agent(), 'go', { traceIncludeSensitiveData: false });
      const [shown, withoutData] = wiresOf('generation').map(
        (wire) => wire?.['model_config'] as Record<string, unknown>,
      );
      expect(Object.keys(shown ?? {}).toSorted()).toEqual(
        'context_management,frequency_penalty,include_usage,max_tokens,metadata,parallel_tool_calls,presence_penalty,prompt_cache_options,prompt_cache_retention,reasoning,response_include,retry,store,temperature,timeout,tool_choice,top_logprobs,top_p,truncation,verbosity'.split(
          ',',
        ),
      );
      expect(shown).toMatchObject({ temperature: 0.2, max_tokens: 9, top_p: null, metadata: { tenant: 'marker' } });
      const { metadata: _, ...others } = shown ?? {};
      expect(withoutData).toEqual(others);
      expect(JSON.stringify(shown)).not.toContain('marker-1');
    });

    it('tools that the provider runs itself have no function span: the model span tells of them [TRACE-S14]', async () => {
      const search = {
        type: 'web_search_call',
        id: 'ws_1',
        status: 'completed',
        action: { type: 'search', query: 'q' },
      };
      const output = [search as unknown as ResponseOutputItem, text('Found.')];
      await runForm(new Agent({ name: 'A', model: new ScriptedModel([{ output }], { trace: true }) }), 'go');
      expect(recorder.spans.map(({ type }) => type)).toEqual(['task', 'agent', 'turn', 'generation']);
      expect(wiresOf('generation')[0]?.['output']).toMatchObject([{ type: 'web_search_call' }, { type: 'message' }]);
    });

    it('nothing of links, baggage or sampling [TRACE-A14]', async () => {
      await runForm(new Agent({ name: 'A', model: new ScriptedModel(['hi'], { trace: true }) }), 'go');
      const members = [...recorder.traces, ...recorder.spans].flatMap((item) => {
        const names = new Set<string>();
        for (let at: object = item; at !== Object.prototype; at = Object.getPrototypeOf(at) as object)
          for (const name of Object.getOwnPropertyNames(at)) names.add(name.toLowerCase());
        return [...names];
      });
      expect(members.filter((name) => /link|baggage|sampl/.test(name))).toEqual([]);
    });

    it.each([
      ['the official endpoint', 'https://api.openai.com/v1', 'resp_0001'],
      ['another base URL', 'https://proxy.test/v1', null],
    ])(
      'without sensitive data the response id at %s, usage at both [TRACE-T68, E17, E11]',
      async (_name, baseURL, expected) => {
        const fake = new FakeOpenAI({ steps: ['hi'] });
        const model = new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client({ baseURL }) });
        const agent = new Agent({ name: 'A', model, modelSettings: { metadata: { tenant: 'marker' } } });
        await runForm(agent, 'go', { traceIncludeSensitiveData: false });
        const [wire] = wiresOf('response');
        expect(wire?.['response_id']).toBe(expected);
        expect(wire?.['usage']).toMatchObject({ requests: 1 });
        const [span] = recorder.spans.filter((one): one is Span<'response'> => one.type === 'response');
        expect(span?.spanData).not.toHaveProperty('response');
        expect(JSON.stringify([span?.spanData, span?.details])).not.toContain('marker');
      },
    );
  });
});
