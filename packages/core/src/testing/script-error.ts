import { AgentsError, defineError } from '../base/errors.ts';

export type ModelScriptErrorCode =
  | 'model_script'
  | 'unexpected_model_call'
  | 'unconsumed_model_steps'
  | 'invalid_model_step';

/** A script does not fit the calls that were made. No failure of a model, so never retried. */
export class ModelScriptError extends AgentsError {
  static {
    defineError(this, 'ModelScriptError');
  }
  declare readonly code: ModelScriptErrorCode;
  /** Which call, from 0; the message counts from 1. */
  readonly callIndex: number | undefined;

  constructor(message: string, options: { code?: ModelScriptErrorCode; callIndex?: number; cause?: unknown } = {}) {
    super(message, {
      code: options.code ?? 'model_script',
      ...(options.cause === undefined ? undefined : { cause: options.cause }),
    });
    this.callIndex = options.callIndex;
  }
}
