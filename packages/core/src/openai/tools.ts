import type { Handoff } from '../agent/handoff.ts';
import type { Tool } from '../agent/tool.ts';
import { UserError } from '../base/errors.ts';
import type { ModelSettings } from '../models/model.ts';
import { plainCopy } from '../models/plain.ts';

type WireTool = Readonly<Record<string, unknown>>;

/** Tools never change, so their wire form is made once. Only a cache: without it everything is the same, but slower. */
const converted = new WeakMap<object, WireTool>();

/** @throws UserError for tools that the API has not */
export function toolToWire(tool: Tool<never>): WireTool {
  let wire = converted.get(tool);
  if (wire === undefined) {
    wire = functionToWire(tool);
    converted.set(tool, wire);
  }
  return wire;
}

/** A handoff is a function for the model (MODEL §5). */
export function handoffToWire(handoff: Handoff<never>): WireTool {
  const { toolName: name, toolDescription: description, inputJsonSchema, strictJsonSchema: strict } = handoff;
  return plainCopy({ type: 'function', name, description, parameters: inputJsonSchema, strict }, `handoff '${name}'`);
}

function functionToWire(tool: Tool<never>): WireTool {
  const { type, name } = tool;
  if (type !== 'function') throw new UserError(`The Responses API model cannot send tools of type '${String(type)}'.`);
  const { allowedCallers, outputJsonSchema } = tool;
  const wire = {
    type,
    name,
    description: tool.description,
    parameters: tool.paramsJsonSchema,
    strict: tool.strictJsonSchema,
    // The service takes tools without the member as called by the model alone.
    ...(allowedCallers.includes('programmatic') && { allowed_callers: allowedCallers }),
    ...(outputJsonSchema && { output_schema: outputJsonSchema }),
    ...tool.providerData,
  };
  return plainCopy(wire, `tool '${name}'`);
}

/** Choices that name a kind of tool which the service runs. */
const hostedKinds: ReadonlySet<string> = new Set([
  'file_search',
  'web_search',
  'web_search_preview',
  'image_generation',
  'code_interpreter',
  'mcp',
  'programmatic_tool_calling',
  'computer_use_preview',
]);

/** `hasOther`: tools come from elsewhere too (`extraBody`), so that names are not known here. @throws UserError for a choice that no tool can satisfy */
export function toolChoiceToWire(
  choice: ModelSettings['toolChoice'],
  tools: readonly WireTool[],
  hasOther: boolean,
): unknown {
  if (choice === undefined || choice === null) return undefined;
  if (choice === 'auto' || choice === 'none') return choice;
  if (tools.length === 0 && !hasOther)
    throw new UserError('toolChoice asks for a tool, but the agent has none that is enabled.');
  if (choice === 'required') return choice;
  if (typeof choice === 'object') return { type: 'mcp', server_label: choice.serverLabel, name: choice.name };
  if (hostedKinds.has(choice)) return { type: choice };
  const names = tools.map((tool) => tool['name']);
  if (!hasOther && !names.includes(choice))
    throw new UserError(`toolChoice names '${choice}', but the agent's tools are: ${names.join(', ')}.`);
  return { type: 'function', name: choice };
}
