import { sha256Base64Url } from '../base/digest.ts';
import { UserError } from '../base/errors.ts';
import { pythonJson } from '../base/json-encode.ts';
import { checkOptions, kinds } from '../base/options.ts';
import type { Check } from '../base/options.ts';
import { metadataOf } from './store-metadata.ts';
import { pauses } from './decode.ts';
import type { SessionPage, SessionPageResult } from './store-backend.ts';
import type { SessionInfo, SessionQuery } from './store.ts';

const DEFAULT_LIMIT = 50;
/** Sessions that are looked at by one call of the backend, where more than a page are. */
const MOST = 500;

export const date: Check = (value) =>
  value instanceof Date && !Number.isNaN(value.getTime()) ? undefined : 'a valid Date';

/** @throws UserError for unknown members, values of a wrong kind and cursors of another query. */
export function readQuery(query: SessionQuery | undefined, where: string): SessionPage {
  checkOptions(
    query,
    {
      prefix: kinds.string,
      metadata: kinds.object,
      updatedAfter: date,
      updatedBefore: date,
      order: kinds.oneOf('updated', 'created', 'id'),
      limit: kinds.integer(1),
      cursor: kinds.string,
      withCount: kinds.boolean,
    },
    where,
  );
  // A value that no metadata can have is a mistake, and not every database could be asked for it.
  if (query?.metadata !== undefined) metadataOf(query.metadata, `Option 'metadata' of ${where}`);
  const { cursor, limit = DEFAULT_LIMIT, order = 'updated', withCount = false, ...conditions } = query ?? {};
  const page = { ...conditions, order, limit, withCount };
  return cursor === undefined ? page : { ...page, after: readCursor(cursor, page, where) };
}

/**
 * Pages of the backend until the one that was asked for is full. They grow where few sessions match, so that these few do
 * not take as many calls as there are sessions.
 */
export async function listPage(
  page: SessionPage,
  list: (page: SessionPage) => SessionPageResult | Promise<SessionPageResult>,
): Promise<{ sessions: SessionInfo[]; cursor?: string }> {
  // No id has a NUL, and not every database takes a text with one.
  if (page.prefix?.includes('\0') === true) return { sessions: [] };
  const sessions: SessionInfo[] = [];
  const pause = pauses();
  let { after, limit } = page;
  do {
    await pause();
    const missing = page.limit - sessions.length;
    let more = await list({ ...page, after, limit });
    let found = more.sessions.filter((info) => matches(info, page));
    if (found.length > missing) {
      // The next page begins behind the last one that is wanted: only a page that ends there can tell where that is.
      more = await list({ ...page, after, limit: missing });
      found = more.sessions.filter((info) => matches(info, page));
    }
    sessions.push(...found);
    after = more.next;
    const isSparse = found.length < more.sessions.length;
    limit = Math.max(page.limit - sessions.length, isSparse ? Math.min(2 * limit, MOST) : 1);
  } while (after !== undefined && sessions.length < page.limit);
  return after === undefined ? { sessions } : { sessions, cursor: writeCursor(after, page) };
}

function matches(info: SessionInfo, { prefix, metadata, updatedAfter, updatedBefore }: SessionPage): boolean {
  const { sessionId, updatedAt } = info;
  if (prefix !== undefined && !sessionId.startsWith(prefix)) return false;
  if (updatedAfter !== undefined && !(updatedAt !== undefined && updatedAt >= updatedAfter)) return false;
  if (updatedBefore !== undefined && !(updatedAt !== undefined && updatedAt < updatedBefore)) return false;
  return Object.entries(metadata ?? {}).every(
    ([key, value]) =>
      info.metadata !== undefined &&
      Object.hasOwn(info.metadata, key) &&
      pythonJson(info.metadata[key]) === pythonJson(value),
  );
}

// ---- cursors: where the next page begins, bound to the conditions of the query

function writeCursor(keys: readonly (string | number)[], page: SessionPage): string {
  const bytes = new TextEncoder().encode(JSON.stringify([conditionsOf(page), keys]));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

function readCursor(cursor: string, page: SessionPage, where: string): readonly (string | number)[] {
  try {
    const binary = atob(cursor.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (unit) => unit.charCodeAt(0));
    const [conditions, keys] = JSON.parse(new TextDecoder().decode(bytes)) as [unknown, unknown];
    if (conditions === conditionsOf(page) && Array.isArray(keys)) return keys as (string | number)[];
  } catch {
    // Said below.
  }
  throw new UserError(
    `Option 'cursor' of ${where} is not one that a page of this query gave; its other conditions have to be the same.`,
  );
}

function conditionsOf({ order, prefix, metadata, updatedAfter, updatedBefore }: SessionPage): string {
  // Texts with lone surrogates are told apart, too.
  const text = pythonJson([
    order,
    prefix ?? null,
    metadata === undefined ? null : pythonJson(metadata),
    updatedAfter?.getTime() ?? null,
    updatedBefore?.getTime() ?? null,
  ]);
  return sha256Base64Url(text).slice(0, 16);
}
