#!/usr/bin/env node
// Which requirements and scenario rows of the specification are named in a test title.
//   node scripts/spec-coverage.mjs                 a line per file of the specification
//   node scripts/spec-coverage.mjs --missing RUN   the ids of that prefix which no test names
//   node scripts/spec-coverage.mjs --json [--ids]
// Run it in the project's root. It reads docs/spec (or --spec DIR). A test names what it shows in its title: `[RUN-101]`, `[RUN-101, STATE-136]`,
// scenario rows as `[RUN#12]`, `[STATE#98]`, `[SESS#3]`, `[MODEL#27]`, `[TRACE-T6]`, `[TOOL-AC15]`. Decisions (`[TRACE-D-13]`) and the rows of
// the table of session writes (`[SESS-W6]`) may be named too; they say in other words what requirements say, and are not counted.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

const args = process.argv.slice(2);
const specDir = args.includes('--spec') ? args[args.indexOf('--spec') + 1] : 'docs/spec';
const files = {
  RUN: '10-run-results-streaming.md',
  STATE: '20-runstate-hitl.md',
  SESS: '30-sessions.md',
  TRACE: '40-tracing.md',
  TOOL: '50-agents-tools-handoffs.md',
  MODEL: '60-models.md',
};

function idsOf(prefix, text) {
  const ids = new Set();
  const own = new RegExp(`\\b${prefix}-([A-Z]{0,2}\\d+)\\b`, 'g');
  for (const m of text.matchAll(own)) ids.add(`${prefix}-${m[1]}`);
  // rows of the scenario table, the last table of the file
  const rows = new Set();
  const tail = text.slice(text.search(/^## [^\n]*(acceptance|scenario)/im));
  for (const m of tail.matchAll(/^\| *(\d+)(?: [^|]*)? *\|/gm)) rows.add(`${prefix}#${m[1]}`);
  if (prefix !== 'TRACE' && prefix !== 'TOOL') for (const r of rows) ids.add(r);
  if (prefix === 'TRACE') for (const m of text.matchAll(/^\| *T(\d+)\b/gm)) ids.add(`TRACE-T${m[1]}`);
  if (prefix === 'TOOL') for (const m of text.matchAll(/\bAC(\d+)\b/g)) ids.add(`TOOL-AC${m[1]}`);
  // a requirement or row marked (later) is not counted
  for (const line of text.split('\n')) {
    if (!line.includes('(later)')) continue;
    const m = /^\W*([A-Z]+-[A-Z]{0,2}\d+)\b/.exec(line) ?? /^\| *(?:TRACE-)?(T\d+|AC\d+|\d+)\b/.exec(line);
    if (!m) continue;
    const id = m[1].includes('-') ? m[1] : /^\d/.test(m[1]) ? `${prefix}#${m[1]}` : `${prefix}-${m[1]}`;
    ids.delete(id.startsWith(prefix) ? id : `${prefix}-${id}`);
  }
  return ids;
}

/** What a test may name without being asked to: decisions of a file, and rows of tables beside the scenarios. */
function namesBeside(prefix, text) {
  const names = [...text.matchAll(/^\| *D-(\d+) *\|/gm)].map((m) => `${prefix}-D-${m[1]}`);
  for (const m of text.matchAll(/^\| *(W\d+) *\|/gm)) names.push(`${prefix}-${m[1]}`);
  return names;
}

function* testFiles(dir) {
  for (const name of readdirSync(dir)) {
    if (name === 'node_modules' || name === 'dist' || name.startsWith('.')) continue;
    const path = join(dir, name);
    const s = statSync(path);
    if (s.isDirectory()) yield* testFiles(path);
    else if (
      /\.(test|spec|suite|scenarios?|test-d)\.[cm]?tsx?$/.test(name) ||
      (/[\\/](test|tests|contract|testing)[\\/]/.test(relative(process.cwd(), path)) && /\.[cm]?tsx?$/.test(name))
    )
      yield path;
  }
}

const named = new Map();
const unread = [];
const name = (id, file) => named.set(id, relative(process.cwd(), file));
for (const file of testFiles(process.cwd())) {
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (/^\s*(\/\/|\*|\/\*)/.test(line) || !/['"`]/.test(line)) continue; // titles, not comments
    for (const bracket of line.matchAll(/\[((?:RUN|STATE|SESS|TRACE|TOOL|MODEL|IL)[-#][^\]\n]*)\]/g)) {
      let prefix = '';
      let mark = '-';
      for (const part of bracket[1].split(/[,\s]+/).filter(Boolean)) {
        const m =
          /^(?:(RUN|STATE|SESS|TRACE|TOOL|MODEL|IL))?([-#])?(D-|[A-Z]{0,2})(\d+)(?:[-–…]+([A-Z]{0,2})(\d+))?$/.exec(
            part,
          );
        if (!m) {
          unread.push(`${relative(process.cwd(), file)}: ${part}`);
          continue;
        }
        prefix = m[1] ?? prefix;
        mark = m[2] ?? (m[1] ? '-' : mark);
        const width = m[4].startsWith('0') ? m[4].length : 0;
        for (let n = +m[4]; n <= +(m[6] ?? m[4]); n++)
          name(`${prefix}${mark}${m[3]}${String(n).padStart(width, '0')}`, file);
      }
    }
  }
}

const report = {};
for (const [prefix, file] of Object.entries(files)) {
  const ids = [...idsOf(prefix, readFileSync(join(specDir, file), 'utf8'))];
  const missing = ids.filter((id) => !named.has(id));
  report[prefix] = {
    total: ids.length,
    named: ids.length - missing.length,
    missing,
    ...(args.includes('--ids') && { ids }),
  };
}
if (args.includes('--json')) console.log(JSON.stringify(report));
else if (args[0] === '--missing') {
  for (const prefix of args.slice(1).length ? args.slice(1) : Object.keys(files))
    console.log(`${prefix}: ${report[prefix].missing.join(' ')}`);
} else {
  let t = 0,
    n = 0;
  for (const [prefix, r] of Object.entries(report)) {
    t += r.total;
    n += r.named;
    console.log(`${prefix.padEnd(6)} ${String(r.named).padStart(4)} of ${r.total}`);
  }
  console.log(`total  ${String(n).padStart(4)} of ${t}`);
  const known = new Set(
    Object.entries(files).flatMap(([prefix, file]) => {
      const text = readFileSync(join(specDir, file), 'utf8');
      return [...idsOf(prefix, text), ...namesBeside(prefix, text)];
    }),
  );
  const unknown = [...named.keys()].filter((id) => !known.has(id));
  const faults = [...named.keys()].filter((id) => id.startsWith('IL-'));
  console.log(`known faults named: ${faults.length}`);
  const strange = unknown.filter((id) => !id.startsWith('IL-'));
  if (strange.length) console.log(`named by tests but not in the specification: ${strange.join(' ')}`);
  if (unread.length) console.log(`not understood: ${unread.join('; ')}`);
}
