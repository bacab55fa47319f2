import type { ModelSettings } from '../models/model.ts';
import { env } from '../base/env.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';

const fallback = 'gpt-5.6-luna';

/** `OPENAI_DEFAULT_MODEL`, else `gpt-5.6-luna`. */
export function getDefaultModel(): string {
  return env('OPENAI_DEFAULT_MODEL')?.trim().toLowerCase() || fallback;
}

type Effort = 'none' | 'low' | 'medium';

/** Reasoning that suits a model when nobody said otherwise; with `dated`, also of the name with a date behind it. */
const efforts: readonly { readonly effort: Effort; readonly dated: boolean; readonly names: readonly string[] }[] = [
  {
    effort: 'none',
    dated: true,
    names: [
      'gpt-5.1',
      'gpt-5.2',
      'gpt-5.4',
      'gpt-5.4-mini',
      'gpt-5.4-nano',
      'gpt-5.5',
      'gpt-5.6',
      'gpt-5.6-sol',
      'gpt-5.6-terra',
      'gpt-5.6-luna',
    ],
  },
  { effort: 'none', dated: false, names: ['gpt-5.3-codex'] },
  { effort: 'low', dated: true, names: ['gpt-5'] },
  { effort: 'low', dated: false, names: ['gpt-5.2-codex'] },
  { effort: 'medium', dated: true, names: ['gpt-5.2-pro', 'gpt-5.4-pro'] },
];

/** Names without defaults although they begin with `gpt-5`: these models do not reason. */
const plain: readonly string[] = [
  'gpt-5-chat-latest',
  'gpt-5.1-chat-latest',
  'gpt-5.2-chat-latest',
  'gpt-5.3-chat-latest',
];

/** Settings that an agent without `modelSettings` gets for this name; a fresh object. @throws UserError for anything but a name */
export function getDefaultModelSettings(model: string = getDefaultModel()): ModelSettings {
  if (typeof model !== 'string')
    throw new UserError(`getDefaultModelSettings() takes the name of a model, not ${kindOf(model)}.`);
  if (!model.startsWith('gpt-5') || plain.includes(model)) return {};
  const base = model.replace(/-\d{4}-\d{2}-\d{2}$/, '');
  const row = efforts.find(({ dated, names }) => names.includes(dated ? base : model));
  return { ...(row && { reasoning: { effort: row.effort } }), verbosity: 'low' };
}
