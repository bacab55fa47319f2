import { sha256Hex } from '../../../base/digest.ts';
import { check, refuses, rejection, same } from '../case.ts';
import { catalogue } from '../session/catalogue.ts';
import { turns, user } from './scene.ts';
import type { AnyStore, StoreCase } from './scene.ts';

async function linesOf(store: AnyStore, id: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of store.export(id)) lines.push(line);
  return lines;
}

async function* from(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

const mixed = [
  ...turns(2),
  ...catalogue,
  { end: true, items: 0, sha256: '' },
  user('Grüße 😀 \u2028 漢字'),
  user('last'),
];

export const exports: readonly StoreCase[] = [
  {
    id: 'X1',
    title: 'an export is lines of JSON with a count and a hash, and its import has the same items',
    async body(scene) {
      const store = await scene.filled(mixed);
      const lines = await linesOf(store, scene.id);
      same(lines.length, mixed.length + 2, 'count of lines');
      check(
        lines.every((line) => line.endsWith('\n') && line.indexOf('\n') === line.length - 1),
        'one line break at the end of each line',
      );
      const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      same([parsed[0]?.['format'], parsed[0]?.['version']], ['agents-session', 1], 'format and version');
      same(parsed[0]?.['sessionId'], scene.id, 'session id');
      const { createdAt } = (await store.get(scene.id)) ?? {};
      same(parsed[0]?.['createdAt'], createdAt?.toISOString() ?? null, 'time of creation');
      same(parsed.slice(1, -1), mixed, 'items');
      // With their line breaks: another program has to find the same.
      const sha256 = sha256Hex(lines.slice(1, -1).join(''));
      same(parsed.at(-1), { end: true, items: mixed.length, sha256 }, 'last line');
      same(await store.import(`${scene.id}-copy`, from(lines)), mixed.length, 'count of what was imported');
      same(await store.session(`${scene.id}-copy`).getItems(), mixed, 'items of the import');
      const again = await linesOf(store, `${scene.id}-copy`);
      same(again.at(-1), lines.at(-1), 'count and hash of its own export');
    },
  },
  {
    id: 'X2',
    title: 'lines may come without their breaks',
    async body(scene) {
      const store = await scene.filled(turns(1));
      const lines = (await linesOf(store, scene.id)).map((line) => line.trimEnd());
      same(await store.import(`${scene.id}-copy`, from(lines)), 5, 'count');
      same(await store.session(`${scene.id}-copy`).getItems(), turns(1), 'items');
    },
  },
  {
    id: 'X3',
    title: 'what was cut off, changed or is no export is refused, and nothing of it stays',
    async body(scene) {
      const store = await scene.filled(turns(2));
      const lines = await linesOf(store, scene.id);
      const wrong: Record<string, readonly string[]> = {
        'no lines': [],
        'a header alone': lines.slice(0, 1),
        'lines without the last': lines.slice(0, -1),
        'lines without an item': [...lines.slice(0, 3), ...lines.slice(4)],
        'an item twice': [...lines.slice(0, 3), ...lines.slice(2)],
        'items in another order': [lines[0] ?? '', lines[2] ?? '', lines[1] ?? '', ...lines.slice(3)],
        'a changed item': lines.map((line) => line.replace('question 1', 'question 9')),
        'a line that is no JSON': lines.map((line, index) => (index === 2 ? '{"role":\n' : line)),
        'another count': [...lines.slice(0, -1), (lines.at(-1) ?? '').replace('"items":10', '"items":9')],
        'another format': ['{"format":"other","version":1}\n', ...lines.slice(1)],
        'another version': [(lines[0] ?? '').replace('"version":1', '"version":2'), ...lines.slice(1)],
        'no header': lines.slice(1),
      };
      const target = `${scene.id}-copy`;
      for (const [name, changed] of Object.entries(wrong)) {
        await refuses(() => store.import(target, from(changed)), 'session_error', `import() of ${name}`);
        check((await store.get(target)) === undefined, `no session after the import of ${name}`);
        same(await store.session(target).getItems(), [], `items after the import of ${name}`);
      }
      same((await store.list()).sessions.length, 1, 'count of sessions: what was staged is gone');
    },
  },
  {
    id: 'X4',
    title: 'a session that exists is left alone, continued or replaced, in one step',
    async body(scene) {
      const store = await scene.filled(turns(2));
      const lines = await linesOf(store, scene.id);
      const target = `${scene.id}-copy`;
      await store.session(target).addItems([user('mine')]);
      await refuses(() => store.import(target, from(lines)), 'session_error', 'import() into a session that exists');
      same(await store.session(target).getItems(), [user('mine')], 'items');
      const broken = lines.slice(0, -1);
      for (const ifExists of ['append', 'replace'] as const) {
        await rejection(() => store.import(target, from(broken), { ifExists }), `a broken import with '${ifExists}'`);
        same(await store.session(target).getItems(), [user('mine')], 'items after a broken import');
      }
      await store.import(target, from(lines), { ifExists: 'append' });
      same(await store.session(target).getItems(), [user('mine'), ...turns(2)], 'items after an append');
      await store.import(target, from(lines), { ifExists: 'replace' });
      same(await store.session(target).getItems(), turns(2), 'items after a replacement');
      await store.import(`${scene.id}-fresh`, from(lines), { ifExists: 'append' });
      same(await store.session(`${scene.id}-fresh`).getItems(), turns(2), 'items of a session that was not there');
    },
  },
  {
    id: 'X5',
    title: 'an import is not seen before it is whole',
    async body(scene) {
      const store = await scene.filled(turns(300));
      const lines = await linesOf(store, scene.id);
      const target = `${scene.id}-copy`;
      const other = await scene.open();
      let looks = 0;
      async function* watched(): AsyncGenerator<string> {
        for (const [index, line] of lines.entries()) {
          if (index % 500 === 499) {
            looks++;
            same(await other.session(target).getItems(), [], 'items during the import');
            check((await other.get(target)) === undefined, 'no session during the import');
            same((await other.list()).sessions.length, 1, 'count of sessions during the import');
          }
          yield line;
        }
      }
      same(await store.import(target, watched()), 1500, 'count');
      check(looks === 3, 'three looks');
      same((await other.session(target).getItems()).length, 1500, 'count of items');
    },
  },
  {
    id: 'X6',
    title: 'an empty session is exported and imported, an unknown one is not',
    async body(scene) {
      const store = await scene.open();
      await store.setMetadata(scene.id, { tag: 1 });
      const lines = await linesOf(store, scene.id);
      same(lines.length, 2, 'count of lines');
      same(await store.import(`${scene.id}-copy`, from(lines)), 0, 'count');
      same((await store.get(`${scene.id}-copy`))?.itemCount, 0, 'itemCount');
      await refuses(() => linesOf(store, `${scene.id}-none`), 'session_error', 'export() of no session');
      await store.session(`${scene.id}-full`).addItems(turns(1));
      await store.import(`${scene.id}-full`, from(lines), { ifExists: 'replace' });
      same(await store.session(`${scene.id}-full`).getItems(), [], 'items after a replacement by none');
    },
  },
  {
    id: 'X7',
    title: 'encrypted items are imported under their own id alone',
    async body(scene) {
      const items = [{ __enc__: 1, v: 1, kid: 'hkdf-v1', payload: 'gAAA' }, user('x')];
      const store = await scene.filled(items);
      const lines = await linesOf(store, scene.id);
      const error = await refuses(() => store.import(`${scene.id}-copy`, from(lines)), 'session_error', 'import()');
      check(String(error['message']).includes('migrateSession'), 'an error that names migrateSession()');
      await store.delete(scene.id);
      same(await store.import(scene.id, from(lines)), 2, 'count under the same id');
      same(await store.session(scene.id).getItems(), items, 'items');
    },
  },
  {
    id: 'X8',
    title: 'an export is of one moment, whatever others do to the session meanwhile',
    async body(scene) {
      const items = turns(300);
      const store = await scene.filled(items);
      const session = store.session(scene.id);
      const exportedWhile = async (change: () => Promise<unknown>): Promise<unknown[]> => {
        const parsed: unknown[] = [];
        for await (const line of store.export(scene.id)) {
          if (parsed.length === 1) await change();
          parsed.push(JSON.parse(line));
        }
        return parsed.slice(1, -1);
      };
      same(await exportedWhile(() => session.addItems([user('new')])), items, 'items while others append');
      const changes: Record<string, () => Promise<unknown>> = {
        'a pop': () => session.popItem(),
        'a clear': () => session.clearSession(),
      };
      for (const [name, change] of Object.entries(changes)) {
        const before = await session.getItems();
        const end = await exportedWhile(change).catch((error: unknown) => error as { readonly code?: unknown });
        if (Array.isArray(end)) same(end, before, `items of an export during ${name}`);
        else same(end.code, 'session_version_conflict', `code of the error of an export during ${name}`);
      }
    },
  },
];
