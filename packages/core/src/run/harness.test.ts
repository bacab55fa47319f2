import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Agent } from '../index.ts';
import type { RunOptions } from '../index.ts';
import { setDefaultModelProvider } from '../models/provider.ts';
import { MultiProvider, OpenAIProvider, setOpenAIDefaults } from '../openai/index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';

let recorder: InMemoryTraceProcessor;
beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(() => {
  vi.unstubAllEnvs();
  resetDefaults();
});

bothForms((runForm, form) => {
  describe(`the id of the harness (${form})`, () => {
    const metadataOf = async (options: RunOptions = {}): Promise<unknown> => {
      await runForm(new Agent({ name: 'A', model: new ScriptedModel(['hi']) }), 'hi', options);
      return recorder.traces.at(-1)?.metadata;
    };

    it("is the provider's, else the process's, else the environment's, trimmed; blank ones do not count [TRACE-R2, MODEL-309]", async () => {
      expect(await metadataOf()).toEqual({});
      vi.stubEnv('OPENAI_AGENT_HARNESS_ID', ' env ');
      expect(await metadataOf()).toEqual({ agent_harness_id: 'env' });
      setOpenAIDefaults({ harnessId: ' process ' });
      expect(await metadataOf()).toEqual({ agent_harness_id: 'process' });
      const modelProvider = new OpenAIProvider({ apiKey: 'k', harnessId: ' own ' });
      expect(await metadataOf({ modelProvider })).toEqual({ agent_harness_id: 'own' });
      expect(await metadataOf({ modelProvider: new MultiProvider({ openai: modelProvider }) })).toEqual({
        agent_harness_id: 'own',
      });
      const blank = new OpenAIProvider({ apiKey: 'k', harnessId: '  ' });
      expect(await metadataOf({ modelProvider: blank })).toEqual({ agent_harness_id: 'process' });
      setDefaultModelProvider(modelProvider);
      expect(await metadataOf()).toEqual({ agent_harness_id: 'own' });
      setDefaultModelProvider(undefined);
      setOpenAIDefaults({ harnessId: null });
      expect(await metadataOf()).toEqual({ agent_harness_id: 'env' });
    });

    it('stands beside the metadata of the user, whose own id wins [TRACE-R2, M9]', async () => {
      setOpenAIDefaults({ harnessId: 'h' });
      expect(await metadataOf({ traceMetadata: { tenant: 'acme' } })).toEqual({
        tenant: 'acme',
        agent_harness_id: 'h',
      });
      expect(recorder.spans.at(-1)?.toJSON()?.metadata).toEqual({ agent_harness_id: 'h' });
      expect(await metadataOf({ traceMetadata: { agent_harness_id: 'mine' } })).toEqual({ agent_harness_id: 'mine' });
    });
  });
});
