import { UserError } from '../base/errors.ts';
import { isPlainObject } from '../base/json.ts';
import { encodeJson, JsonEncodeError } from '../base/json-encode.ts';
import { kindOf } from '../base/options.ts';
import { decodeItem } from './codec.ts';

/** A copy of plain JSON. @throws UserError that names the member, never its value */
export function metadataOf(patch: unknown, where: string): Record<string, unknown> {
  if (!isPlainObject(patch)) throw new UserError(`${where} takes a plain object, not ${kindOf(patch)}.`);
  try {
    return decodeItem<Record<string, unknown>>(encodeJson(patch)) ?? {};
  } catch (error) {
    if (!(error instanceof JsonEncodeError)) throw error;
    throw new UserError(`${where} takes JSON: member '${error.path}' ${error.problem}.`, { cause: error });
  }
}
