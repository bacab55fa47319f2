import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto';

import { authenticationFailed } from './errors.ts';

const ITERATIONS = 4096;

const sha256 = (data: Buffer): Buffer => createHash('sha256').update(data).digest();
const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** The server's side of a login by SCRAM-SHA-256 (RFC 5802, 7677), without channel binding. */
export class ScramLogin {
  readonly user: string;
  /** The first answer. */
  readonly challenge: string;
  readonly #firstBare: string;
  readonly #nonce: string;
  readonly #salted: Buffer;

  /** @param passwords by user; for others there is one that nobody knows */
  constructor(message: string, passwords: ReadonlyMap<string, string>) {
    const bare = message.slice(message.indexOf(',', message.indexOf(',') + 1) + 1);
    const { n = '', r = '' } = membersOf(bare);
    const salt = randomBytes(28);
    this.user = n.replaceAll('=2C', ',').replaceAll('=3D', '=');
    const password = passwords.get(this.user) ?? randomBytes(16).toString('hex');
    this.#firstBare = bare;
    this.#nonce = r + randomBytes(18).toString('base64');
    this.#salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
    this.challenge = `r=${this.#nonce},s=${salt.toString('base64')},i=${ITERATIONS}`;
  }

  /** The last answer, which proves that the server knows the password, too. @throws CommandError */
  finish(message: string): string {
    const { r, p = '' } = membersOf(message);
    const withoutProof = message.slice(0, message.lastIndexOf(',p='));
    const signed = `${this.#firstBare},${this.challenge},${withoutProof}`;
    const storedKey = sha256(hmac(this.#salted, 'Client Key'));
    const signature = hmac(storedKey, signed);
    const proof = Buffer.from(p, 'base64');
    if (r !== this.#nonce || proof.length !== signature.length) throw authenticationFailed();
    const clientKey = Buffer.from(proof.map((byte, index) => byte ^ (signature[index] ?? 0)));
    if (!timingSafeEqual(sha256(clientKey), storedKey)) throw authenticationFailed();
    return `v=${hmac(hmac(this.#salted, 'Server Key'), signed).toString('base64')}`;
  }
}

/** `a=1,b=2`. */
function membersOf(message: string): Record<string, string> {
  return Object.fromEntries(message.split(',').map((member) => [member.slice(0, 1), member.slice(2)]));
}
