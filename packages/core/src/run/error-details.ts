import type { RunErrorDetails } from '../base/errors.ts';
import type { RunState } from '../snapshot/run-state.ts';
import type { RunContext } from '../state/context.ts';
import type { StateRecord } from '../state/record.ts';
import type { Trace } from '../tracing/types.ts';
import { replayList } from '../snapshot/replay.ts';
import { stateOf } from '../snapshot/run-state.ts';
import { copyRecord } from '../state/copy.ts';
import { publicResults, publicView, readOnly } from '../state/public-view.ts';

/** What an error that leaves a run carries: made when somebody asks, from the record as it was at the failure. */
export function errorDetails(
  frozen: StateRecord,
  context: RunContext,
  trace: Trace | undefined,
): { readonly runData: () => RunErrorDetails; readonly state: () => RunState } {
  return {
    runData: () => {
      const { newItems, rawResponses } = publicView(frozen);
      const results = publicResults(frozen);
      return {
        input: frozen.input,
        newItems: readOnly(newItems),
        rawResponses: readOnly(rawResponses),
        lastAgent: frozen.currentAgent,
        context,
        inputGuardrailResults: readOnly(results.input),
        outputGuardrailResults: readOnly(results.output),
        toolInputGuardrailResults: readOnly(results.toolInput),
        toolOutputGuardrailResults: readOnly(results.toolOutput),
        traceId: trace?.traceId,
        toInputList: () => replayList(frozen),
      };
    },
    state: () => stateOf(copyRecord(frozen)),
  };
}
