import { readFileSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** What kind of file system the measured files are on: a write that waits for the disk costs nothing on tmpfs. */
export function fileSystem(): string {
  try {
    const folder = `${realpathSync(tmpdir())}/`;
    const mounts = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, point = '']) => folder.startsWith(point.endsWith('/') ? point : `${point}/`))
      .toSorted(([, a = ''], [, b = '']) => a.length - b.length);
    return mounts.at(-1)?.[2] ?? 'an unknown file system';
  } catch {
    return 'an unknown file system';
  }
}
