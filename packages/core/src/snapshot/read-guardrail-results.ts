import type { AnyAgent } from '../agent/agent.ts';
import type { GuardrailFunctionOutput, ToolGuardrailBehavior } from '../agent/guardrail.ts';
import { isObject } from '../base/json.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { GuardrailResultLists } from '../state/record.ts';
import type { AgentGraph } from './agents.ts';
import { checkElementDepth, own } from './json.ts';
import { malformed } from './read-json.ts';

export interface ReadGuardrailResults {
  readonly lists: GuardrailResultLists;
  /** Whether an entry of the results of tools' output guardrails had to be dropped. */
  readonly droppedToolOutput: boolean;
}

/** Guardrails come back as their names; entries of another kind are dropped (STATE-356). @throws UserError `state_malformed` */
export function readGuardrailResults(
  json: JsonObject,
  graph: AgentGraph,
  currentAgent: AnyAgent,
): ReadGuardrailResults {
  const entries = (key: string, type: string): Entry[] => {
    const results = own(json, key) ?? [];
    if (!Array.isArray(results)) throw malformed(key, 'a list');
    return (results as readonly JsonValue[]).flatMap((result) => {
      checkElementDepth(result);
      return readEntry(result, type) ?? [];
    });
  };
  const toolOutput = entries('tool_output_guardrail_results', 'tool_output');
  const stored = own(json, 'tool_output_guardrail_results');
  return {
    lists: {
      input: entries('input_guardrail_results', 'input').map(({ guardrail, output }) => ({
        guardrail,
        output: readVerdict(output),
      })),
      output: entries('output_guardrail_results', 'output').map(({ guardrail, output, all }) => ({
        guardrail,
        agent: graph.resolve(own(all, 'agent')) ?? currentAgent,
        agentOutput: own(all, 'agentOutput') ?? null,
        output: readVerdict(output),
      })),
      toolInput: entries('tool_input_guardrail_results', 'tool_input').map(readToolResult),
      toolOutput: toolOutput.map(readToolResult),
    },
    droppedToolOutput: Array.isArray(stored) && stored.length !== toolOutput.length,
  };
}

interface Entry {
  readonly guardrail: { readonly name: string };
  readonly output: JsonObject;
  readonly all: JsonObject;
}

function readEntry(result: JsonValue, type: string): Entry | undefined {
  const guardrail = isObject(result) ? own(result, 'guardrail') : undefined;
  if (!isObject(result) || !isObject(guardrail) || own(guardrail, 'type') !== type) return undefined;
  const name = own(guardrail, 'name');
  const output = own(result, 'output');
  return {
    guardrail: { name: typeof name === 'string' ? name : '' },
    output: isObject(output) ? output : {},
    all: result,
  };
}

function readVerdict(output: JsonObject): GuardrailFunctionOutput {
  return {
    tripwireTriggered: own(output, 'tripwireTriggered') === true,
    outputInfo: own(output, 'outputInfo') ?? null,
  };
}

function readToolResult({ guardrail, output }: Entry): GuardrailResultLists['toolInput'][number] {
  return {
    guardrail,
    output: { behavior: readBehavior(own(output, 'behavior')), outputInfo: own(output, 'outputInfo') ?? null },
  };
}

function readBehavior(json: JsonValue | undefined): ToolGuardrailBehavior {
  const type = isObject(json) ? own(json, 'type') : undefined;
  if (type === 'raise_exception') return { type };
  if (type !== 'reject_content') return { type: 'allow' };
  const message = own(json as JsonObject, 'message');
  return { type, message: typeof message === 'string' ? message : '' };
}
