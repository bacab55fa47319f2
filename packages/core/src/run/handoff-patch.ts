import type { HandoffInputData, HandoffInputPatch } from '../agent/handoff.ts';
import type { ForwardedItem } from './handoff-history.ts';
import { internal } from '../base/brand.ts';
import { UserError } from '../base/errors.ts';
import { isPlainObject } from '../base/json.ts';
import { kindOf } from '../base/options.ts';
import { checkItemList } from '../items/check.ts';
import { RunItemBase } from '../items/items.ts';

/**
 * What a filter of a handoff returned, laid over what it saw: members that are absent or `undefined` stay, `context` is
 * ignored (TOOL-HO20). Nothing is copied.
 *
 * @param where whose filter it is, for messages: `the input filter of handoff transfer_to_billing`
 * @throws UserError when it is no plain object, or a member of it is unknown or of the wrong kind (TOOL-HO21)
 */
export function mergePatch<C>(data: HandoffInputData<C>, patch: unknown, where: string): HandoffInputData<C> {
  if (!isPlainObject(patch) || Array.isArray(patch))
    throw new UserError(
      `What ${where} returns must be a plain object with what to change ({} for nothing), not ${kindOf(patch)}.`,
    );
  const unknown = Object.keys(patch).find((key) => !members.includes(key));
  if (unknown !== undefined)
    throw new UserError(
      `What ${where} returns has the unknown member '${unknown}'. What can be changed is inputHistory, preHandoffItems, newItems and inputItems.`,
    );
  const { inputHistory, preHandoffItems, newItems, inputItems } = patch;
  if (inputHistory !== undefined && typeof inputHistory !== 'string')
    checkItemList(inputHistory, `As \`inputHistory\`, ${where} returned`);
  return {
    inputHistory: (inputHistory as HandoffInputPatch['inputHistory']) ?? data.inputHistory,
    preHandoffItems: runItems(preHandoffItems, 'preHandoffItems', where) ?? data.preHandoffItems,
    newItems: runItems(newItems, 'newItems', where) ?? data.newItems,
    inputItems: runItems(inputItems, 'inputItems', where) ?? data.inputItems,
    context: data.context,
  };
}

/** Of what a filter gets, which is a patch too. */
const members: readonly string[] = [
  'inputHistory',
  'preHandoffItems',
  'newItems',
  'inputItems',
  'context',
] satisfies (keyof HandoffInputData)[];

/** Says in a patch which of its input came from run items unchanged: the loop must not list these twice (TOOL-HO36). */
export function withForwarded<P extends object>(patch: P, forwarded: readonly ForwardedItem[]): P {
  return forwarded.length === 0 ? patch : { ...patch, [internal]: forwarded };
}

/** What `withForwarded` says; also of a patch that was spread into another one. */
export function forwardedOf(patch: object): readonly ForwardedItem[] {
  return (patch as { readonly [internal]?: readonly ForwardedItem[] })[internal] ?? [];
}

function runItems(
  list: unknown,
  member: keyof HandoffInputPatch,
  where: string,
): HandoffInputData['newItems'] | undefined {
  if (list === undefined) return undefined;
  if (!Array.isArray(list))
    throw new UserError(`As \`${member}\`, ${where} returned ${kindOf(list)} where an array of run items belongs.`);
  // By index: holes are undefined items.
  for (let index = 0; index < list.length; index++) {
    if (list[index] instanceof RunItemBase) continue;
    throw new UserError(
      `As \`${member}\`, ${where} returned ${kindOf(list[index])} as item ${index}. Take run items of what the filter was given.`,
    );
  }
  return list as HandoffInputData['newItems'];
}
