export type Style = 'bold' | 'dim' | 'red' | 'yellow';
const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, yellow: 33 };
const RESET = '\u{1b}[0m';

/** A text in a style, where there are styles. */
export function painted(text: string, style: Style, colours: boolean): string {
  return colours && text !== '' ? `\u{1b}[${CODES[style]}m${text}${RESET}` : text;
}

/** Names and error texts may hold line breaks and control characters; those would break the tree or the terminal. */
export function oneLine(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}

/** At most so many characters, with a mark where something is missing. */
export function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** A text in lines of at most `width` characters, broken between words where that is possible. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width);
    const end = space > width / 2 ? space : width;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

/** `412 ms`, `1.42 s`; `undefined` for what has not ended. */
export function duration(startMs: number | undefined, endMs: number | undefined): string | undefined {
  if (startMs === undefined || endMs === undefined) return undefined;
  const ms = endMs - startMs;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms >= 10 ? ms.toFixed(0) : ms.toFixed(1)} ms`;
}
