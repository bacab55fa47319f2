/** Cases that cannot be run somewhere are left out by name; any other must not be skipped. */
export const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

/** What changes a session: a script, or a transaction that has more than reads. */
export function isWrite(request: Buffer): boolean {
  const text = request.toString('latin1');
  if (/\r\n(?:eval|evalsha)\r\n/i.test(text)) return true;
  return /\r\nexec\r\n/i.test(text) && /\r\n(?:hset|rpop|del)\r\n/i.test(text);
}
