import { ApiRefusal } from './types.ts';

type Item = Readonly<Record<string, unknown>>;
const names = (list: string): ReadonlySet<string> => new Set(list.split(' '));

/** Members of the items whose shape is checked; of all other kinds only what no item has. */
const itemMembers: Readonly<Record<string, ReadonlySet<string>>> = {
  message: names('type role content id status phase'),
  function_call: names('type id call_id name arguments status namespace caller'),
  function_call_output: names('type id call_id output status caller'),
  reasoning: names('type id summary content encrypted_content status'),
  item_reference: names('type id'),
};
const otherKinds = names(
  'file_search_call computer_call computer_call_output web_search_call image_generation_call code_interpreter_call local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output mcp_list_tools mcp_approval_request mcp_approval_response mcp_call custom_tool_call custom_tool_call_output tool_search_call tool_search_output compaction additional_tools program program_output',
);
const neverMembers = ['provider_data', 'created_by', 'rawItem', 'raw_item', 'agent'];
const partMembers: Readonly<Record<string, ReadonlySet<string>>> = {
  input_text: names('type text prompt_cache_breakpoint'),
  input_image: names('type image_url file_id detail prompt_cache_breakpoint'),
  input_file: names('type file_data file_id file_url filename detail prompt_cache_breakpoint'),
  output_text: names('type text annotations logprobs'),
  refusal: names('type refusal'),
};
const idPrefixes: Readonly<Record<string, string>> = { message: 'msg', function_call: 'fc', reasoning: 'rs' };

/** Refuses input that the API refuses; `known` are the items of the conversation before it. */
export function checkInput(input: unknown, known: readonly object[]): void {
  if (input === undefined || typeof input === 'string') return;
  if (!Array.isArray(input))
    throw new ApiRefusal("Invalid type for 'input': expected one of a string or an array.", {
      param: 'input',
      code: 'invalid_type',
    });
  const items = input as readonly Item[];
  checkItems(items, 'input');
  checkCalls(items, known as readonly Item[]);
  checkReasoning(items);
}

/** Each by itself; `where` is the parameter that they are. */
export function checkItems(items: readonly object[], where: string): void {
  for (const [index, item] of items.entries()) checkItem(item as Item, `${where}[${index}]`);
  checkIds(items as readonly Item[]);
}

function checkItem(item: Item, path: string): void {
  if (typeof item !== 'object' || item === null)
    throw new ApiRefusal(`Invalid type for '${path}': expected an object.`, { param: path, code: 'invalid_type' });
  const type = kindOf(item);
  const allowed = itemMembers[type];
  if (allowed === undefined && !otherKinds.has(type))
    throw new ApiRefusal(`Invalid value: '${type}'.`, { param: `${path}.type`, code: 'invalid_value' });
  const unknown = Object.keys(item).find((key) =>
    allowed === undefined ? neverMembers.includes(key) : !allowed.has(key),
  );
  if (unknown !== undefined)
    throw new ApiRefusal(`Unknown parameter: '${path}.${unknown}'.`, {
      param: `${path}.${unknown}`,
      code: 'unknown_parameter',
    });
  const prefix = idPrefixes[type];
  const { id } = item;
  if (typeof id === 'string' && prefix !== undefined && !id.startsWith(prefix))
    throw new ApiRefusal(`Invalid '${path}.id': '${id}'. Expected an ID that begins with '${prefix}'.`, {
      param: `${path}.id`,
      code: 'invalid_value',
    });
  if (type === 'message') checkContent(item, path);
  if (type.startsWith('function_call')) {
    for (const key of type === 'function_call' ? ['call_id', 'name', 'arguments'] : ['call_id', 'output']) {
      if (item[key] === undefined)
        throw new ApiRefusal(`Missing required parameter: '${path}.${key}'.`, {
          param: `${path}.${key}`,
          code: 'missing_required_parameter',
        });
    }
  }
}

function checkContent(item: Item, path: string): void {
  const { content, role } = item;
  if (typeof content === 'string') return;
  if (!Array.isArray(content))
    throw new ApiRefusal(`Missing required parameter: '${path}.content'.`, {
      param: `${path}.content`,
      code: 'missing_required_parameter',
    });
  for (const [index, part] of (content as Item[]).entries()) {
    const at = `${path}.content[${index}]`;
    const type = String(part['type']);
    const allowed = partMembers[type];
    const isOutput = type === 'output_text' || type === 'refusal';
    if (allowed === undefined || isOutput !== (role === 'assistant'))
      throw new ApiRefusal(`Invalid value: '${type}'.`, { param: `${at}.type`, code: 'invalid_value' });
    const unknown = Object.keys(part).find((key) => !allowed.has(key));
    if (unknown !== undefined)
      throw new ApiRefusal(`Unknown parameter: '${at}.${unknown}'.`, {
        param: `${at}.${unknown}`,
        code: 'unknown_parameter',
      });
    const sources = ['file_data', 'file_id', 'file_url'].filter((key) => part[key] !== undefined && part[key] !== null);
    if (type === 'input_file' && sources.length > 1)
      throw new ApiRefusal(`Mutually exclusive parameters: '${at}.${sources[0]}' and '${at}.${sources[1]}'.`, {
        param: at,
        code: 'mutually_exclusive_parameters',
      });
  }
}

function checkIds(items: readonly Item[]): void {
  const seen = new Set<unknown>();
  for (const { id, type } of items) {
    if (typeof id !== 'string' || type === 'item_reference') continue;
    if (seen.has(id))
      throw new ApiRefusal(
        `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`,
        { param: 'input' },
      );
    seen.add(id);
  }
}

/** Every call has its output and every output its call, in this input or before it. */
function checkCalls(items: readonly Item[], known: readonly Item[]): void {
  const all = [...known, ...items];
  const idsOf = (type: string): ReadonlySet<unknown> =>
    new Set(all.filter((item) => item['type'] === type).map((item) => item['call_id']));
  const calls = idsOf('function_call');
  const outputs = idsOf('function_call_output');
  for (const callId of outputs)
    if (!calls.has(callId))
      throw new ApiRefusal(`No tool call found for function call output with call_id ${String(callId)}.`, {
        param: 'input',
      });
  for (const callId of calls)
    if (!outputs.has(callId))
      throw new ApiRefusal(`No tool output found for function call ${String(callId)}.`, { param: 'input' });
}

function checkReasoning(items: readonly Item[]): void {
  for (const [index, item] of items.entries()) {
    if (item['type'] !== 'reasoning') continue;
    const next = items[index + 1];
    const follows =
      next !== undefined &&
      next['role'] !== 'user' &&
      next['role'] !== 'system' &&
      next['role'] !== 'developer' &&
      !String(next['type']).endsWith('_output');
    if (!follows)
      throw new ApiRefusal(
        `Item '${String(item['id'])}' of type 'reasoning' was provided without its required following item.`,
        { param: 'input' },
      );
  }
}

function kindOf(item: Item): string {
  return item['type'] === undefined && item['role'] !== undefined ? 'message' : String(item['type']);
}
