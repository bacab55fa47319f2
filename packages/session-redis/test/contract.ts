/** Cases that cannot be run somewhere are left out by name; any other must not be skipped. */
export const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

/** A script, or the end of a transaction: what changes a session. */
export const isWrite = (request: Buffer): boolean => /\r\n(?:eval|evalsha|exec)\r\n/i.test(request.toString('latin1'));
