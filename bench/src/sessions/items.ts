import { answer, question, toolArguments, toolName, weather } from '../task.ts';

/** What a turn with a tool adds to a history: four items. Which one it is can be seen. */
export function batch(index: number): object[] {
  return [
    { role: 'user', content: `${question} It is question number ${index}.` },
    { type: 'function_call', id: `fc_${index}`, call_id: `call_${index}`, name: toolName, arguments: toolArguments },
    { type: 'function_call_output', call_id: `call_${index}`, output: weather({ city: 'Oslo' }) },
    {
      type: 'message',
      id: `msg_${index}`,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: answer, annotations: [] }],
    },
  ];
}
