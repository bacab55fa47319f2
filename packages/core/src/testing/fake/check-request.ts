import { checkInput } from './check-input.ts';
import { checkStrictSchema } from './schema.ts';
import { ApiRefusal } from './types.ts';

export type Body = Readonly<Record<string, unknown>>;

const members: ReadonlySet<string> = new Set(
  'background background_options context_management conversation include input instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user'.split(
    ' ',
  ),
);

/** Refuses what the API refuses. `known` are the items of the conversation before this request. */
export function checkRequest(body: Body, known: readonly object[], models: readonly string[] | undefined): void {
  for (const key of Object.keys(body))
    if (!members.has(key))
      throw new ApiRefusal(`Unknown parameter: '${key}'.`, { param: key, code: 'unknown_parameter' });
  const { model } = body;
  if (typeof model !== 'string' && body['prompt'] === undefined)
    throw new ApiRefusal("Missing required parameter: 'model'.", {
      param: 'model',
      code: 'missing_required_parameter',
    });
  if (typeof model === 'string' && models !== undefined && !models.includes(model))
    throw new ApiRefusal(`The requested model '${model}' does not exist.`, { param: 'model', code: 'model_not_found' });
  checkRange(body, 'temperature', 0, 2);
  checkRange(body, 'top_p', 0, 1);
  checkRange(body, 'top_logprobs', 0, 20);
  checkTools(body);
  checkFormat(body['text']);
  checkInput(body['input'], known);
}

function checkRange(body: Body, key: string, min: number, max: number): void {
  const value = body[key];
  if (value === undefined || value === null) return;
  if (typeof value !== 'number')
    throw new ApiRefusal(`Invalid type for '${key}': expected a decimal, but got ${typeOf(value)} instead.`, {
      param: key,
      code: 'invalid_type',
    });
  if (value < min)
    throw new ApiRefusal(
      `Invalid '${key}': decimal below minimum value. Expected a value >= ${min}, but got ${value} instead.`,
      { param: key, code: 'decimal_below_min_value' },
    );
  if (value > max)
    throw new ApiRefusal(
      `Invalid '${key}': decimal above maximum value. Expected a value <= ${max}, but got ${value} instead.`,
      { param: key, code: 'decimal_above_max_value' },
    );
}

function checkTools(body: Body): void {
  const tools = (body['tools'] ?? []) as Body[];
  if (!Array.isArray(tools))
    throw new ApiRefusal("Invalid type for 'tools': expected an array.", { param: 'tools', code: 'invalid_type' });
  for (const [index, tool] of tools.entries()) {
    if (tool['type'] !== 'function') continue;
    const name = tool['name'];
    if (typeof name !== 'string' || !/^[\w-]{1,64}$/u.test(name))
      throw new ApiRefusal(
        `Invalid 'tools[${index}].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
        { param: `tools[${index}].name`, code: 'invalid_value' },
      );
    if (tool['strict'] === true)
      checkStrictSchema(
        tool['parameters'],
        `function '${name}'`,
        `tools[${index}].parameters`,
        'invalid_function_parameters',
      );
  }
  checkToolChoice(body['tool_choice'], tools);
}

function checkToolChoice(choice: unknown, tools: readonly Body[]): void {
  if (choice === undefined || choice === 'auto' || choice === 'none') return;
  const shown = typeof choice === 'object' ? ((choice as Body)['name'] ?? (choice as Body)['type']) : choice;
  if (tools.length === 0)
    throw new ApiRefusal(`Tool choice '${String(shown)}' must be specified with 'tools' parameter.`, {
      param: 'tool_choice',
    });
  if (choice === 'required') return;
  const { type, name } = choice as Body;
  const isThere = tools.some((tool) => (type === 'function' ? tool['name'] === name : tool['type'] === type));
  if (!isThere)
    throw new ApiRefusal(`Tool choice '${String(shown)}' not found in 'tools' parameter.`, { param: 'tool_choice' });
}

function checkFormat(text: unknown): void {
  const format = (text as Body | undefined)?.['format'] as Body | undefined;
  if (format?.['type'] !== 'json_schema') return;
  const name = format['name'];
  if (typeof name !== 'string')
    throw new ApiRefusal("Missing required parameter: 'text.format.name'.", {
      param: 'text.format.name',
      code: 'missing_required_parameter',
    });
  if (format['strict'] === true)
    checkStrictSchema(format['schema'], `response_format '${name}'`, 'text.format.schema', 'invalid_json_schema');
}

export function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}
