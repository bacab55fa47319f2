/** Passes on how `work` ends, whatever it throws, after `first`; no tick later than a `then` of one's own. */
export function passOn<T>(
  work: PromiseLike<T>,
  first: () => void,
  resolve: (value: T) => void,
  reject: (reason: unknown) => void,
): void {
  work.then(
    (value) => {
      first();
      resolve(value);
    },
    (error: unknown) => {
      first();
      reject(error);
    },
  );
}
