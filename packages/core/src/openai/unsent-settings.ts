import { getLogger } from '../base/logger.ts';
import type { ModelSettings } from '../models/model.ts';

/** Settings for which the Responses API has no member. */
const unsent = ['frequencyPenalty', 'presencePenalty'] as const satisfies readonly (keyof ModelSettings)[];

/** Warns of settings that a model cannot express: once for each of its names and settings. `warned` belongs to the model, or to all models of a provider. */
export function warnOfUnsent(model: string, settings: ModelSettings, warned: Set<string>): void {
  for (const setting of unsent) {
    const key = `${model} ${setting}`;
    if (settings[setting] === undefined || settings[setting] === null || warned.has(key)) continue;
    warned.add(key);
    getLogger('models').warn(
      `The Responses API has no ${setting}: the setting is left out of requests to the model ${model}.`,
    );
  }
}
