import { getRunErrorState, runStreamed } from '@agents/core';
import type { RunState, RunStreamEvent } from '@agents/core';
import type { Desk } from './desk.ts';
import { dim, printable } from './text.ts';

/**
 * One run, from a message or from a run that was not over, shown as it happens. A run that pauses or fails stays in the
 * folder; one that completes leaves it.
 *
 * @throws the run's error
 */
export async function takeTurn(
  desk: Desk,
  input: string | RunState,
  write: (text: string) => void,
  signal?: AbortSignal,
): Promise<'completed' | 'interrupted'> {
  const { agent, folder, model, session } = desk;
  if (typeof input === 'string') folder.dropRun();
  const stream = runStreamed(agent, input, {
    ...model,
    session,
    signal,
    // What was started when a run failed may have happened: a person says what became of it.
    onInDoubt: 'interrupt',
    workflowName: 'Support desk',
    groupId: session.sessionId,
  });
  try {
    const show = shower(write);
    for await (const event of stream) show(event);
    const result = await stream.completed;
    if (result.status === 'interrupted') folder.keepRun(result.toState().toString());
    else folder.dropRun();
    return result.status;
  } catch (error) {
    // Where a failed run can go on is data too.
    const state = getRunErrorState(error);
    if (state !== undefined) folder.keepRun(state.toString());
    throw error;
  }
}

/** Text as it streams, calls and their outputs a line each. */
function shower(write: (text: string) => void): (event: RunStreamEvent) => void {
  let inText = false;
  const line = (text: string): void => {
    write(`${inText ? '\n' : ''}${dim(text)}\n`);
    inText = false;
  };
  return (event) => {
    if (event.type === 'raw_response_event' && event.data.type === 'response.output_text.delta') {
      write(`${inText ? '' : 'Desk: '}${printable(event.data.delta)}`);
      inText = true;
    } else if (event.type === 'run_item_stream_event') {
      if (event.name === 'tool_called') line(`  → ${callText(event.item.rawItem)}`);
      else if (event.name === 'tool_output') line(`  ← ${printable(outputText(event.item.output))}`);
      else if (event.name === 'message_output_created' && inText) {
        write('\n');
        inText = false;
      }
    }
  };
}

function callText(call: object): string {
  const { name, arguments: args } = call as { name?: unknown; arguments?: unknown };
  return printable(`${String(name)} ${String(args)}`);
}

function outputText(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output);
}
