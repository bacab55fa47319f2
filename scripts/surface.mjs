// The public surface of a built package, read from its declarations (dist/*.d.ts): which names each entry exports, and
// the text of every declaration behind them without comments.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseSync } from 'oxc-parser';

const valueKinds = new Set([
  'ClassDeclaration',
  'FunctionDeclaration',
  'TSDeclareFunction',
  'VariableDeclaration',
  'TSEnumDeclaration',
  'TSModuleDeclaration',
]);

/** The names that a declaration statement declares. */
function namesOf(node) {
  if (node.type === 'VariableDeclaration') return node.declarations.map((one) => one.id.name);
  return node.id?.name ? [node.id.name] : [];
}

const nameOf = (node) => node.name ?? node.value;

/** One declaration file: its own declarations, and where its exports come from. */
function readFile(file) {
  const text = readFileSync(file, 'utf8');
  const { program, comments, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const target = (source) =>
    source.value.startsWith('.') ? resolve(dirname(file), source.value.replace(/\.js$/, '.d.ts')) : source.value;
  /** A node's text without comments, `export` and `declare`, empty lines and spaces at the ends of lines. */
  const textOf = (node) => {
    let out = '';
    let at = node.start;
    for (const comment of comments.filter((one) => one.start >= node.start && one.end <= node.end)) {
      out += text.slice(at, comment.start);
      at = comment.end;
    }
    out += text.slice(at, node.end);
    return out
      .replace(/^(export |default |declare )+/, '')
      .replace(/[ \t]+$/gm, '')
      .replace(/\n{2,}/g, '\n');
  };
  const declarations = [];
  const imports = new Map();
  const exports = new Map();
  const declare = (node) =>
    declarations.push({ names: namesOf(node), value: valueKinds.has(node.type), text: textOf(node) });
  for (const node of program.body) {
    if (node.type === 'ImportDeclaration') {
      for (const one of node.specifiers)
        imports.set(one.local.name, {
          from: target(node.source),
          name: one.imported ? nameOf(one.imported) : one.type === 'ImportDefaultSpecifier' ? 'default' : '*',
        });
    } else if (node.type === 'ExportNamedDeclaration' && node.declaration) {
      declare(node.declaration);
      for (const name of namesOf(node.declaration)) exports.set(name, { local: name });
    } else if (node.type === 'ExportNamedDeclaration') {
      for (const one of node.specifiers) {
        exports.set(
          nameOf(one.exported),
          node.source
            ? { from: target(node.source), name: nameOf(one.local) }
            : { local: nameOf(one.local), type: one.exportKind === 'type' },
        );
      }
    } else if (node.type === 'ExportAllDeclaration') {
      exports.set(node.exported ? nameOf(node.exported) : `* of ${target(node.source)}`, {
        from: target(node.source),
        name: '*',
      });
    } else if (node.type === 'ExportDefaultDeclaration') {
      declarations.push({ names: ['default'], value: true, text: textOf(node) });
      exports.set('default', { local: 'default' });
    } else declare(node);
  }
  return { declarations, imports, exports };
}

/**
 * Reads a package's built declarations.
 * Gives the entries (name in an import → sorted names of values and types) and the declarations, sorted by name.
 */
export function readSurface(folder) {
  const { name, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const dist = join(folder, 'dist');
  if (!existsSync(dist)) throw new Error(`${name} is not built: pnpm build`);
  const files = new Map(
    globSync('**/*.d.ts', { cwd: dist }).map((file) => [join(dist, file), readFile(join(dist, file))]),
  );

  /** What an exported name is, through the files that pass it on. */
  const lookUp = (file, exported) => {
    const found = files.get(file)?.exports.get(exported);
    if (!found) return { value: true, local: exported };
    const passed = found.from ? found : files.get(file).imports.get(found.local);
    if (passed && !files.has(passed.from)) return { value: !found.type, local: exported };
    if (passed) return lookUp(passed.from, passed.name);
    const own = files.get(file).declarations.filter((one) => one.names.includes(found.local));
    return { value: !found.type && own.some((one) => one.value), local: found.local };
  };

  const entries = {};
  for (const [subpath, conditions] of Object.entries(exports)) {
    if (!conditions.types) continue;
    const file = join(folder, conditions.types);
    const found = [...(files.get(file)?.exports.keys() ?? [])]
      .sort()
      .map((exported) => ({ exported, ...lookUp(file, exported) }));
    const show = ({ exported, local }) => (exported === local ? exported : `${exported} (${local})`);
    entries[join(name, subpath)] = {
      values: found.filter((one) => one.value).map(show),
      types: found.filter((one) => !one.value).map(show),
    };
  }
  const declarations = [...files.values()]
    .flatMap((file) => file.declarations)
    .map((one) => one.text)
    .filter(Boolean);
  const order = (text) =>
    text.replace(/^(abstract |async |class |const |enum |function |interface |let |namespace |type |module )+/, '');
  declarations.sort((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0));
  return { name, entries, declarations };
}
