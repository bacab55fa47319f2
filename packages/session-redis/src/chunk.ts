/** Elements of one `RPUSH`; a script may hand over some 8 000. */
export const CHUNK = 4000;
