// Agents as tools: an orchestrator calls three translators, and answers itself. The French one is asked only when a person
// agrees; the Italian one has a dictionary that costs money, whose calls wait for a person too, inside of its own run.
// Both wait at once, and the whole of it is written down as JSON in between.
import { Agent, run, RunState, tool } from '@agents/core';
import { toolCall } from '@agents/core/testing';
import { z } from 'zod';
import { offline } from './example/offline.ts';
import { outcomeOf } from './example/outcome.ts';

function team() {
  const dictionary = tool({
    name: 'look_up_word',
    description: 'Looks a word up in a dictionary. Costs 10 cents.',
    parameters: z.object({ word: z.string() }),
    needsApproval: true,
    execute: ({ word }) => `${word}: libreria (shop), biblioteca (library)`,
  });

  const spanish = new Agent({
    name: 'Spanish translator',
    instructions: 'Translate into Spanish.',
    model: offline('¿Dónde está la librería?'),
  });
  const french = new Agent({
    name: 'French translator',
    instructions: 'Translate into French.',
    model: offline('Où est la librairie ?'),
  });
  const italian = new Agent({
    name: 'Italian translator',
    instructions: 'Translate into Italian. Look up each word that has two meanings.',
    tools: [dictionary],
    model: offline(toolCall('look_up_word', { word: 'bookshop' }), "Dov'è la libreria?"),
  });

  const input = { input: 'Where is the bookshop?' };
  return new Agent({
    name: 'Orchestrator',
    instructions: 'Get all translations that are asked for from your tools, at once. Then list them.',
    tools: [
      spanish.asTool({ toolName: 'to_spanish', toolDescription: 'Translates into Spanish.' }),
      french.asTool({ toolName: 'to_french', toolDescription: 'Translates into French.', needsApproval: true }),
      italian.asTool({ toolName: 'to_italian', toolDescription: 'Translates into Italian.' }),
    ],
    model: offline(
      [toolCall('to_spanish', input), toolCall('to_french', input), toolCall('to_italian', input)],
      "¿Dónde está la librería? – No French today. – Dov'è la libreria?",
    ),
  });
}

export async function main(runForm = run) {
  const orchestrator = team();
  const paused = await runForm(orchestrator, 'Translate "Where is the bookshop?" into Spanish, French and Italian.');

  // A file or a row of a database, for hours or weeks.
  const text = paused.toState().toString();

  const state = await RunState.fromString(orchestrator, text);
  const waiting = state.interruptions.map((call) => `${call.agent.name}: ${call.name} ${call.arguments}`);
  for (const call of state.interruptions) {
    console.log(`${call.agent.name} wants ${call.name} ${call.arguments}`);
    if (call.name === 'to_french') state.reject(call, { message: 'No French today.' });
    else state.approve(call);
  }

  const result = await runForm(orchestrator, state);
  console.log(result.finalOutput);
  const outputs = result.newItems.flatMap((item) => (item.type === 'tool_call_output_item' ? [item.output] : []));
  const decisions = state.getDecisions().map(({ type, toolName, path }) => [...path, toolName, type].join(' '));
  return { waiting, decisions, ...outcomeOf(result), outputs };
}

if (import.meta.main) await main();
