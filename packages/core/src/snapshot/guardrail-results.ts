import type { JsonObject } from '../items/wire.ts';
import type { GuardrailResultLists } from '../state/record.ts';
import type { AgentGraph } from './agents.ts';
import { plainData } from './plain.ts';

/** The four lists of results as members of the state (STATE-356). */
export function writeGuardrailResults(
  results: GuardrailResultLists,
  graph: AgentGraph,
): { [key: string]: JsonObject[] } {
  return {
    input_guardrail_results: results.input.map(({ guardrail, output }) => verdict('input', guardrail, output)),
    output_guardrail_results: results.output.map(({ guardrail, output, agentOutput, agent }) => ({
      ...verdict('output', guardrail, output),
      agentOutput: plainData(agentOutput),
      agent: graph.ref(agent),
    })),
    tool_input_guardrail_results: results.toolInput.map((result) => toolVerdict('tool_input', result)),
    tool_output_guardrail_results: results.toolOutput.map((result) => toolVerdict('tool_output', result)),
  };
}

function verdict(
  type: string,
  { name }: { readonly name: string },
  { tripwireTriggered, outputInfo }: GuardrailResultLists['input'][number]['output'],
): JsonObject {
  return { guardrail: { type, name }, output: { tripwireTriggered, outputInfo: plainData(outputInfo) } };
}

function toolVerdict(type: string, { guardrail, output }: GuardrailResultLists['toolInput'][number]): JsonObject {
  const { behavior, outputInfo } = output;
  return {
    guardrail: { type, name: guardrail.name },
    output: {
      outputInfo: plainData(outputInfo),
      behavior:
        behavior.type === 'reject_content'
          ? { type: behavior.type, message: behavior.message }
          : { type: behavior.type },
    },
  };
}
