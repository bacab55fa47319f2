/**
 * The one file that names the wire: types of the `openai` package (types only, nothing is loaded).
 * The next major of `openai` is a change of this file.
 */
import type * as R from 'openai/resources/responses/responses';

export type ResponseInputItem = R.ResponseInputItem;
export type ResponseOutputItem = R.ResponseOutputItem;
export type ResponseStreamEvent = R.ResponseStreamEvent;
export type ResponseOutputMessage = R.ResponseOutputMessage;
export type ResponseReasoningItem = R.ResponseReasoningItem;
export type ResponseFunctionToolCall = R.ResponseFunctionToolCall;
export type McpApprovalRequest = R.ResponseOutputItem.McpApprovalRequest;
export type McpApprovalResponse = R.ResponseInputItem.McpApprovalResponse;
export type FunctionCallOutput = R.ResponseInputItem.FunctionCallOutput;

/** Calls that a model makes, local and hosted. */
export type ToolCallWire = Extract<
  ResponseOutputItem,
  {
    type:
      | 'function_call'
      | 'custom_tool_call'
      | 'computer_call'
      | 'shell_call'
      | 'local_shell_call'
      | 'apply_patch_call'
      | 'file_search_call'
      | 'web_search_call'
      | 'code_interpreter_call'
      | 'image_generation_call'
      | 'mcp_call'
      | 'program';
  }
>;

/** Outputs of calls, in the form that goes back to the model. */
export type ToolOutputWire = Extract<
  ResponseInputItem,
  {
    type:
      | 'function_call_output'
      | 'custom_tool_call_output'
      | 'computer_call_output'
      | 'shell_call_output'
      | 'local_shell_call_output'
      | 'apply_patch_call_output'
      | 'program_output';
  }
>;

/** Variables of a prompt template: text, or wire content (`input_text`, `input_image`, `input_file`). */
export type PromptVariable = NonNullable<R.ResponsePrompt['variables']>[string];

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue | undefined };
