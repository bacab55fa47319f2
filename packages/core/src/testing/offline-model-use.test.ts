import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { Agent, run, RunState, tool } from '../index.ts';
import type { RunResult } from '../index.ts';
import { MultiProvider, OpenAIProvider } from '../openai/index.ts';
import { bothForms, OfflineModel, resetDefaults, ScriptedModel, toolCall } from './index.ts';
import { modelRequest } from './request.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  resetDefaults();
});

interface Bundler {
  rolldown(options: object): Promise<{ generate(options: object): Promise<{ output: { code: string }[] }> }>;
}

describe('OfflineModel', () => {
  it('is below 20 kB, minified, and needs no package [MODEL-1302]', async () => {
    // The bundler of the build.
    const require = createRequire(import.meta.url);
    const bundler = createRequire(require.resolve('tsdown'))('rolldown') as Bundler;
    const packages: string[] = [];
    const bundle = await bundler.rolldown({
      input: fileURLToPath(new URL('offline-model.ts', import.meta.url)),
      external: (id: string, importer?: string) => {
        if (importer === undefined) return false;
        if (!/^[./]/.test(id)) packages.push(id);
        // What the rest of core has anyway does not count.
        return id.startsWith('../') || (id.startsWith('/') && !id.includes('/testing/'));
      },
    });
    const { output } = await bundle.generate({ format: 'esm', comments: false, minify: true });
    const code = output[0]?.code ?? '';
    expect(packages).toEqual([]);
    expect(code).toContain('resp_offline_');
    expect(code).toContain('I can help with');
    expect(Buffer.byteLength(code)).toBeLessThan(20_000);
  });

  it('answers the same request in the same way, in any process and runtime [MODEL-1302]', async () => {
    const lookup = tool({
      name: 'lookup_order',
      description: 'Looks up an order.',
      parameters: z.object({ orderId: z.string() }),
      execute: () => '',
    });
    const request = modelRequest({ input: [{ role: 'user', content: 'Where is order 1042?' }], tools: [lookup] });
    const first = await new OfflineModel({ notice: false }).getResponse(request);
    vi.stubGlobal('process', undefined);
    try {
      expect(await new OfflineModel({ notice: false }).getResponse(request)).toEqual(first);
    } finally {
      vi.unstubAllGlobals();
    }
    expect(first.output).toMatchObject([{ type: 'function_call', name: 'lookup_order' }]);
  });

  it('runs only where a program names it: no variable and no provider chooses it [MODEL-1302]', async () => {
    const answered = vi.spyOn(OfflineModel.prototype, 'getResponse');
    vi.stubEnv('OPENAI_API_KEY', '');
    vi.stubEnv('OPENAI_BASE_URL', '');
    for (const name of ['offline', 'OfflineModel', undefined])
      for (const modelProvider of [undefined, new OpenAIProvider(), new MultiProvider()]) {
        vi.stubEnv('OPENAI_DEFAULT_MODEL', name);
        const failed = run(new Agent({ name: 'A', model: name }), 'go', { modelProvider });
        await expect(failed).rejects.toMatchObject({
          code: 'missing_credentials',
          message: expect.stringContaining('OfflineModel'),
        });
      }
    expect(answered).not.toHaveBeenCalled();
  });
});

bothForms((runForm, form) => {
  it(`ids of calls are there and unlike each other over a run and its resumed segments (${form}) [MODEL-105]`, async () => {
    const tools = ['lookup_order', 'lookup_invoice'].map((name) =>
      tool({
        name,
        description: `Looks up the ${name.slice(7)} with this number.`,
        parameters: z.object({ number: z.string() }),
        needsApproval: true,
        execute: ({ number }) => `${name} ${number}: paid`,
      }),
    );
    // Each segment has a model of its own, as another process would.
    const desk = (): Agent => new Agent({ name: 'A', model: new OfflineModel({ notice: false }), tools });
    const idsOf = (result: RunResult): (string | undefined)[] =>
      result.newItems.flatMap((item) => (item.type === 'tool_call_item' ? [item.callId] : []));
    let result: RunResult = await runForm(desk(), 'Look up order and invoice number 7.');
    const text = result.toState().toString();
    for (let segments = 0; result.status === 'interrupted' && segments < 5; segments += 1) {
      const agent = desk();
      const state = await RunState.fromString(agent, segments === 0 ? text : result.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      result = await runForm(agent, state);
    }
    const more = await runForm(desk(), [...result.toInputList(), { role: 'user', content: 'Look up order number 8.' }]);
    const ids = [...idsOf(result), ...idsOf(more)];
    expect([result.status, ids.length]).toEqual(['completed', 3]);
    expect(ids.every((id) => typeof id === 'string' && id !== '')).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it(`a model that gives an empty id, or one again for another call, fails the run (${form}) [MODEL-105] [RUN-406]`, async () => {
    const lookup = tool({ name: 'lookup', parameters: z.object({ id: z.string() }), execute: () => 'ok' });
    const agent = (...ids: string[]): Agent =>
      new Agent({
        name: 'A',
        model: new ScriptedModel(ids.map((callId, index) => toolCall('lookup', { id: String(index) }, { callId }))),
        tools: [lookup],
      });
    await expect(runForm(agent(''), 'go')).rejects.toMatchObject({ code: 'call_id_empty' });
    await expect(runForm(agent('c1', 'c1'), 'go')).rejects.toMatchObject({ code: 'call_id_reused' });
  });
});
