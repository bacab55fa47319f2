import type { MaybePromise } from '../agent/tool.ts';
import { isThenable } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import type { Model, ModelProvider } from './model.ts';
import { getDefaultModelProvider } from './provider.ts';

export interface ModelSource {
  /** The run option `model`. */
  readonly runModel?: string | Model | undefined;
  /** The run option `modelProvider`. Default: that of the process. */
  readonly provider?: ModelProvider | undefined;
  readonly agent: { readonly model: string | Model | undefined };
}

/**
 * The model of a call: the run's, else the agent's, else the provider's default. Objects are taken as they are, names go
 * through the provider; a promise only where the provider gives one.
 * @throws UserError when the provider has no such model
 */
export function resolveModel({ runModel, provider, agent }: ModelSource): MaybePromise<Model> {
  const named = runModel ?? agent.model;
  if (typeof named === 'object') return named;
  const from = provider ?? getDefaultModelProvider();
  const model: MaybePromise<Model | null | undefined> = from.getModel(named);
  return isThenable(model) ? model.then((found) => checked(found, named, from)) : checked(model, named, from);
}

function checked(model: Model | null | undefined, name: string | undefined, provider: ModelProvider): Model {
  if (typeof model === 'object' && model !== null) return model;
  const asked = name === undefined ? 'its default model' : `the model '${name}'`;
  const kind = provider.constructor?.name;
  throw new UserError(
    `The model provider${kind && kind !== 'Object' ? ` ${kind}` : ''} gave no model when asked for ${asked}: getModel must return a model or throw.`,
  );
}
