import { runningSha256 } from '../base/digest.ts';
import { UserError } from '../base/errors.ts';
import { decodeRecord, pauses } from './decode.ts';
import { SessionError } from './errors.ts';
import { versionConflict } from './history-backend.ts';
import type { StoredRecord } from './history-backend.ts';
import { isEnvelope, pairedMembers, turnsOf, wholePairs } from './store-turns.ts';

/** A history that is read part by part, from its oldest record on; each time as it is then. */
export interface HistorySource {
  readonly sessionId: string;
  parts(): AsyncIterable<readonly StoredRecord[]>;
}

interface Valid {
  readonly item: object;
  readonly text: string;
}

/**
 * What a fork copies, part by part. A cut at a turn needs two readings: whether a call before it is answered shows behind it.
 *
 * @throws SessionError for encrypted items; UserError when there is no such turn; SessionVersionConflictError when the
 * history was changed in between
 */
export async function* forkedTexts(source: HistorySource, untilTurn: number | undefined): AsyncGenerator<string[]> {
  if (untilTurn === undefined) {
    for await (const part of validParts(source)) yield part.map(({ text }) => text);
    return;
  }
  const { stays, hash } = await readCut(source, untilTurn);
  const running = runningSha256();
  let index = 0;
  for await (const part of validParts(source)) {
    const head = part.slice(0, stays.length - index);
    const from = index;
    index += head.length;
    for (const { text } of head) running.update(`${text}\n`);
    yield head.flatMap(({ text }, at) => (stays[from + at] === true ? [text] : []));
    if (index === stays.length) break;
  }
  const now = running.hex();
  if (now !== hash) throw versionConflict(source.sessionId, hash, now);
}

/** Which of the items before the turn are copied, and a hash of their texts. Of an item it keeps what pairs it with others. */
async function readCut(source: HistorySource, untilTurn: number): Promise<{ stays: boolean[]; hash: string }> {
  const running = runningSha256();
  const members: object[] = [];
  let turns = 0;
  let end: number | undefined;
  for await (const part of validParts(source)) {
    for (const { item, text } of part) {
      if (turnsOf([item]).length > 0 && ++turns === untilTurn) end = members.length;
      if (end === undefined) running.update(`${text}\n`);
      members.push(pairedMembers(item));
    }
  }
  if (end === undefined)
    throw new UserError(`The session has ${turns} user messages; there is no turn ${untilTurn} to stop before.`);
  return { stays: wholePairs(members, end), hash: running.hex() };
}

async function* validParts(source: HistorySource): AsyncGenerator<Valid[]> {
  const pause = pauses();
  for await (const records of source.parts()) {
    const valid: Valid[] = [];
    for (const record of records) {
      const item = decodeRecord<object>(record);
      if (item === undefined) continue;
      if (isEnvelope(item))
        throw new SessionError(
          'The session holds encrypted items, which can be read under its own id alone; nothing was copied. Copy it with migrateSession() from one EncryptedSession to another.',
          { sessionId: source.sessionId },
        );
      valid.push({ item, text: record.text ?? '' });
      await pause();
    }
    yield valid;
  }
}
