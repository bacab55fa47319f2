import type { Step } from '../../state/record.ts';
import type { Pass } from './pass.ts';
import { toolOutputText } from '../../agent/tool-output.ts';
import { getLogger } from '../../base/logger.ts';

const SHOWN_CHARACTERS = 100;

/** For whoever wonders why a resume goes on or pauses again (RUN-1906). */
export function logUnfinished(step: Step, pass: Pass): void {
  const log = getLogger();
  log.debug('A resumed turn did not end the run.', {
    turn: pass.record.currentTurn,
    agent: pass.agent.name,
    step: step.type,
    items: pass.responseItems().map((item) => {
      if (log.dontLogToolData || item.type !== 'tool_call_output_item') return { type: item.type };
      return { type: item.type, output: toolOutputText(item.output).slice(0, SHOWN_CHARACTERS) };
    }),
  });
}
