import { BSON } from 'mongodb';

import type { Doc } from './values.ts';

/** A request, whatever form it came in. */
export interface Message {
  readonly requestId: number;
  /** OP_QUERY, which drivers greet with, wants its answer as OP_REPLY. */
  readonly legacy: boolean;
  /** The command; its document sequences are members of it. Numbers are BSON objects. */
  readonly body: Doc;
}

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;
const HEADER = 16;
export const MAX_MESSAGE_BYTES = 48_000_000;

/** The whole messages at the start of what has arrived, and what is left of it. @throws for what is no message */
export function readMessages(data: Buffer): { messages: Message[]; rest: Buffer } {
  const messages: Message[] = [];
  let rest = data;
  while (rest.length >= 4) {
    const length = rest.readInt32LE(0);
    if (length < HEADER || length > MAX_MESSAGE_BYTES) throw new Error(`A message of ${length} bytes`);
    if (rest.length < length) break;
    messages.push(readMessage(rest.subarray(0, length)));
    rest = rest.subarray(length);
  }
  return { messages, rest };
}

function readMessage(data: Buffer): Message {
  const requestId = data.readInt32LE(4);
  const code = data.readInt32LE(12);
  if (code === OP_MSG) return { requestId, legacy: false, body: readSections(data) };
  if (code !== OP_QUERY) throw new Error(`Messages of code ${code} are not known here`);
  const nameEnd = data.indexOf(0, HEADER + 4);
  return { requestId, legacy: true, body: readDocument(data.subarray(nameEnd + 1 + 8)) };
}

function readSections(data: Buffer): Doc {
  const hasChecksum = (data.readUInt32LE(HEADER) & 1) === 1;
  const end = data.length - (hasChecksum ? 4 : 0);
  let body: Doc = {};
  const sequences: Doc = {};
  for (let at = HEADER + 4; at < end;) {
    const kind = data[at++];
    const size = data.readInt32LE(at);
    if (kind === 0) {
      body = readDocument(data.subarray(at, at + size));
    } else {
      const nameEnd = data.indexOf(0, at + 4);
      const documents: Doc[] = [];
      for (let next = nameEnd + 1; next < at + size; next += data.readInt32LE(next))
        documents.push(readDocument(data.subarray(next, next + data.readInt32LE(next))));
      sequences[data.toString('utf8', at + 4, nameEnd)] = documents;
    }
    at += size;
  }
  return { ...body, ...sequences };
}

/** With its numbers as they were written: Int32, Long, Double. */
export function readDocument(bytes: Uint8Array): Doc {
  return BSON.deserialize(bytes.subarray(0, Buffer.from(bytes.buffer, bytes.byteOffset).readInt32LE(0)), {
    promoteValues: false,
  });
}

export function writeReply(message: Message, reply: Doc): Buffer {
  const body = BSON.serialize(reply);
  const head = Buffer.alloc(message.legacy ? HEADER + 20 : HEADER + 5);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(message.requestId, 8);
  head.writeInt32LE(message.legacy ? OP_REPLY : OP_MSG, 12);
  // OP_REPLY: flags 8 (await capable), cursor 0, from 0, one document. OP_MSG: no flags, one section of kind 0.
  if (message.legacy) {
    head.writeInt32LE(8, HEADER);
    head.writeInt32LE(1, HEADER + 16);
  }
  return Buffer.concat([head, body]);
}
