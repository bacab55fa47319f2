import type { ModelProvider } from '../models/model.ts';
import type { RunOptions } from '../run/options.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kinds } from '../base/options.ts';
import type { Check } from '../base/options.ts';
import { checkGuardrails } from './guardrail.ts';
import { checkRunHooks } from './hooks.ts';
import { checkModelSettings } from './model-settings.ts';
import { sessionShape } from './session-shape.ts';

// What options of runs must be. Down here because agent tools take them too.

const { abortSignal, any, boolean, nonEmptyString, object, string } = kinds;
const callback = kinds.function;

/** The text is made where nothing of the blocked value may be reached: nobody can be waited for there. */
const blockedMessage: Check = (value) => {
  if (nonEmptyString(value) === undefined) return undefined;
  const isAsync = typeof value === 'function' && value.constructor.name === 'AsyncFunction';
  return typeof value === 'function' && !isAsync
    ? undefined
    : 'a string that is not empty or a function that gives one without a promise';
};

const checks: Readonly<Record<keyof RunOptions, Check>> = {
  context: any,
  session: kinds.nullable(sessionShape),
  sessionInputCallback: callback,
  sessionSettings: object,
  sessionConcurrency: kinds.oneOf('allow', 'detect'),
  maxTurns: kinds.nullable(kinds.integer(0)),
  signal: abortSignal,
  hooks: any,
  model: kinds.either(nonEmptyString, object),
  modelProvider: (value) =>
    object(value) === undefined && typeof (value as Partial<ModelProvider>).getModel === 'function'
      ? undefined
      : 'an object with the method getModel',
  modelSettings: object,
  callModelInputFilter: callback,
  reasoningItemIdPolicy: kinds.oneOf('preserve', 'omit'),
  previousResponseId: nonEmptyString,
  autoPreviousResponseId: boolean,
  conversationId: nonEmptyString,
  handoffInputFilter: callback,
  nestHandoffHistory: boolean,
  handoffHistoryMapper: callback,
  handoffHistoryMarkers: object,
  inputGuardrails: any,
  outputGuardrails: any,
  outputGuardrailBlockedMessage: blockedMessage,
  errorHandlers: object,
  extendedEvents: boolean,
  eventBufferLimit: kinds.integer(1),
  toolExecution: object,
  toolErrorFormatter: callback,
  toolNotFoundBehavior: kinds.oneOf('raise_error', 'return_error_to_model'),
  toolNameCollisionPolicy: kinds.oneOf('warn', 'error'),
  onApproval: callback,
  onInDoubt: kinds.oneOf('interrupt', 'fail', 'retry'),
  workflowName: string,
  traceId: nonEmptyString,
  groupId: string,
  traceMetadata: object,
  tracingDisabled: boolean,
  traceIncludeSensitiveData: boolean,
  traceApiKey: nonEmptyString,
  traceTaskAndTurnSpans: boolean,
  traceSessionSpans: boolean,
  traceRedact: callback,
};

const toolExecutionChecks = {
  maxFunctionToolConcurrency: kinds.nullable(kinds.integer(1)),
  preApprovalToolInputGuardrails: boolean,
};
const sessionSettingsChecks = { limit: kinds.nullable(kinds.number) };
const errorHandlerChecks = {
  maxTurns: callback,
  modelRefusal: callback,
  invalidFinalOutput: callback,
  default: callback,
};

/** Of nested history: a line by itself. */
const marker: Check = (value) =>
  typeof value === 'string' && value.trim() !== '' && !value.includes('\n')
    ? undefined
    : 'one line of text that is not empty';

/** Only the run around an agent tool has these. */
const ofOuterRun = ['context', 'signal', 'onApproval', 'onInDoubt'] as const satisfies readonly (keyof RunOptions)[];

/** Options that an agent tool gives to its runs. @throws UserError as `checkRunOptions` */
export function checkNestedRunOptions(options: object, where: string): void {
  for (const name of ofOuterRun)
    if ((options as RunOptions)[name] !== undefined)
      throw new UserError(
        `Option '${name}' of ${where} is not taken: the run of an agent tool has that of the run around it.`,
      );
  checkRunOptions(options, where);
}

/** @throws UserError naming the option and what it takes, before anything starts */
export function checkRunOptions(options: RunOptions<never>, where: string): void {
  checkOptions(options, checks, where);
  checkOptions(options.toolExecution, toolExecutionChecks, `${where}, toolExecution`);
  checkOptions(options.errorHandlers, errorHandlerChecks, `${where}, errorHandlers`);
  checkOptions(options.handoffHistoryMarkers, { start: marker, end: marker }, `${where}, handoffHistoryMarkers`);
  checkOptions(options.sessionSettings, sessionSettingsChecks, `${where}, sessionSettings`);
  if (options.modelSettings !== undefined) checkModelSettings(options.modelSettings, where);
  for (const field of ['inputGuardrails', 'outputGuardrails'] as const)
    if (options[field] !== undefined) checkGuardrails(options[field], field, where);
  if (options.hooks !== undefined) checkRunHooks(options.hooks);
}
