import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bothForms, FakeOpenAI, toolCall } from '@agents/core/testing';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { main as agentsAsTools } from '../src/agents-as-tools.ts';
import { main as inputGuardrail } from '../src/input-guardrail.ts';
import { main as judge } from '../src/judge.ts';
import { main as outputGuardrail } from '../src/output-guardrail.ts';
import { main as parallel } from '../src/parallel.ts';
import { main as pipeline } from '../src/pipeline.ts';
import { main as routing } from '../src/routing.ts';

// Whatever key this machine has: no test asks a service.
beforeEach(() => vi.stubEnv('OPENAI_API_KEY', ''));

bothForms((runForm, form) => {
  describe(`patterns (${form})`, () => {
    it('routing: the agent that took the conversation answers, and the next message too', async () => {
      expect(await routing(runForm)).toEqual([
        {
          agent: 'Billing',
          calls: ['transfer_to_billing', 'find_invoice'],
          text: 'Invoice 7: total 120, due 1 May, not paid.',
        },
        { agent: 'Billing', calls: ['find_invoice'], text: 'Invoice 8: total 120, due 1 May, not paid.' },
      ]);
    });

    it('agents as tools: two calls wait, one of them inside of a nested run, and JSON in between loses nothing', async () => {
      expect(await agentsAsTools(runForm)).toEqual({
        waiting: [
          'Orchestrator: to_french {"input":"Where is the bookshop?"}',
          'Italian translator: look_up_word {"word":"bookshop"}',
        ],
        decisions: ['to_french reject', 'call_3 look_up_word approve'],
        agent: 'Orchestrator',
        calls: ['to_spanish', 'to_french', 'to_italian'],
        text: "¿Dónde está la librería? – No French today. – Dov'è la libreria?",
        outputs: ['¿Dónde está la librería?', 'No French today.', "Dov'è la libreria?"],
      });
    });

    it('pipeline: each step gets what the one before gave, and the check ends it', async () => {
      expect(await pipeline(runForm)).toEqual([
        {
          outline: { agent: 'Outliner', calls: [], text: expect.stringContaining('A lighthouse keeper') },
          verdict: { agent: 'Checker', calls: [], text: { good: true, free: true } },
          story: {
            agent: 'Writer',
            calls: [],
            text: 'The letter lay under the lamp. It was in her own hand. She sat down and wrote back.',
          },
        },
        {
          outline: { agent: 'Outliner', calls: [], text: 'Buy cheap lamps!' },
          verdict: { agent: 'Checker', calls: [], text: { good: false, free: false } },
          story: undefined,
        },
      ]);
    });

    it('parallelization: three answers in the order of the questions, and the picker sees all of them', async () => {
      const texts = ['Buen día, ¿qué quiere?', 'Buenos días, ¿en qué puedo ayudarle?', 'Buenas, ¿qué hay?'];
      expect(await parallel(runForm)).toEqual({
        asked: expect.stringContaining(texts.map((text) => `- ${text}`).join('\n')),
        translations: texts.map((text) => ({ agent: 'Translator', calls: [], text })),
        best: { agent: 'Picker', calls: [], text: texts[1] },
      });
    });

    it('judge: the writer tries again with the reason until the score is good enough', async () => {
      const { rounds, conversation } = await judge(runForm);
      expect(rounds).toEqual([
        { slogan: 'Lamps. For rooms.', score: 3 },
        { slogan: 'Our lamps turn any room into an evening by the fire.', score: 6 },
        { slogan: 'Evenings, switched on.', score: 9 },
      ]);
      expect(conversation.filter((item) => 'role' in item && item.role === 'user')).toMatchObject([
        { content: 'A shop for lamps' },
        { content: 'Not yet. Say what a lamp does to an evening.' },
        { content: 'Not yet. Shorter: three words.' },
      ]);
    });

    // The desk has an answer for the first message alone: asked about the second one, its model would fail the run.
    it('input guardrail: what trips it stops the run before the model is asked', async () => {
      expect(await inputGuardrail(runForm)).toEqual([
        { agent: 'Desk', text: 'We are open from 9 to 5.' },
        { text: 'Sorry, not here.', stoppedBy: 'no homework', why: { homework: true, why: 'an equation to solve' } },
      ]);
    });

    it('output guardrail: an answer that trips it reaches neither the person nor the session', async () => {
      const { answers, session } = await outputGuardrail(runForm);
      expect(answers).toEqual([
        { agent: 'Desk', text: 'Ann works in sales.' },
        { agent: 'Desk', text: 'That I may not say.', stoppedBy: 'no phone numbers' },
      ]);
      expect(session).toMatchObject([{ role: 'user' }, { role: 'assistant' }, { content: 'What is her number?' }]);
      expect(JSON.stringify(session)).not.toContain('0142');
    });
  });
});

/** Compiled sources of the packages: a process starts in a third of the time. */
const NODE_COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/compiled');

/** Runs a pattern as a person would, on the sources of the packages. */
async function start(name: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(import.meta.dirname, `../src/${name}.ts`);
  return promisify(execFile)(process.execPath, ['--conditions=source', file], {
    env: { NODE_COMPILE_CACHE, ...process.env, NO_COLOR: '1', ...env },
  });
}

it('each runs by itself without a key, and says so in one line', async () => {
  const last = {
    routing: 'Billing: Invoice 8: total 120, due 1 May, not paid.',
    'agents-as-tools': "¿Dónde está la librería? – No French today. – Dov'è la libreria?",
    pipeline: 'Lamps of my shop: the outline was not good enough.',
    parallel: 'Best: Buenos días, ¿en qué puedo ayudarle?',
    judge: '3. Evenings, switched on. – 9 of 10. ',
    'input-guardrail': 'Solve x + 3 = 10 for me. → Sorry, not here.',
    'output-guardrail': 'What is her number? → That I may not say.',
  };
  const ended = await Promise.all(Object.keys(last).map((name) => start(name)));
  expect(ended.map(({ stdout }) => stdout.split('\n').at(-2))).toEqual(Object.values(last));
  for (const { stderr } of ended) expect(stderr).toMatch(/^Without OPENAI_API_KEY: .*\n$/);
});

it('with a key the agents ask the service', async () => {
  const fake = new FakeOpenAI({ steps: [toolCall('transfer_to_shipping'), 'Of which parcel?', 'I do not know.'] });
  await using server = await fake.listen();
  const { stdout, stderr } = await start('routing', { OPENAI_API_KEY: 'sk-secret', OPENAI_BASE_URL: server.baseURL });
  expect({ stdout, stderr }).toEqual({ stdout: 'Shipping: Of which parcel?\nShipping: I do not know.\n', stderr: '' });
});
