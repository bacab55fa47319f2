// A folder as users have it: it holds packed packages and what they declare to need, and nothing else of the workspace.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { environment } from './bootstrap.mjs';

export class EmptyProject {
  path = mkdtempSync(join(tmpdir(), 'agents-pack-'));

  /** @throws Error with what the command wrote, when it fails */
  run(command, args, cwd = this.path) {
    const { status, stdout, stderr, error } = spawnSync(command, args, {
      cwd,
      env: { ...environment, NO_COLOR: '1' },
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`);
    return stdout;
  }

  /**
   * Type-checks the folder. Errors in declarations of others are theirs.
   *
   * @throws Error with those that are ours
   */
  compile(tsc, args = []) {
    try {
      this.run('node', [tsc, '-p', '.', '--pretty', 'false', ...args]);
    } catch (error) {
      const errors = /error TS\d+:/.test(error.message) ? ourErrors(error.message) : [error.message];
      if (errors.length > 0) throw new Error(errors.join('\n'), { cause: error });
    }
  }

  /** Packs the package of a folder of the workspace and installs the tarball, whose path it returns. */
  install(folder) {
    const { name } = manifestOf(folder);
    const target = join(this.path, 'tarballs', name);
    mkdirSync(target, { recursive: true });
    this.run('pnpm', ['pack', '--pack-destination', target], folder);
    const tarball = join(target, globSync('*.tgz', { cwd: target })[0]);
    const home = join(this.path, 'node_modules', name);
    // It may be linked already, as what another one needs: what is unpacked must not go into the workspace.
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home, { recursive: true });
    this.run('tar', ['-xzf', tarball, '-C', home, '--strip-components=1']);
    return tarball;
  }

  /** What an installed package cannot do without, as the workspace has it. */
  linkNeeds(folder) {
    for (const one of needsOf(folder)) this.link(one, folder);
  }

  /** Puts a package, as `from` sees it, and all that it needs into the folder's node_modules. */
  link(one, from) {
    const place = join(this.path, 'node_modules', one);
    if (existsSync(place)) return;
    let at = from;
    while (!existsSync(join(at, 'node_modules', one))) {
      if (at === dirname(at)) throw new Error(`${one}, which ${from} needs, is not installed`);
      at = dirname(at);
    }
    const home = realpathSync(join(at, 'node_modules', one));
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(home, place, 'dir');
    needsOf(home).forEach((next) => this.link(next, home));
  }

  remove() {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Which of the compiler's errors, with the lines that explain them, are not in a file of somebody else's package. */
function ourErrors(output) {
  const errors = output.split(/\n(?=\S)/).filter((text) => /error TS\d+:/.test(text));
  return errors.filter((text) => !/^\S*node_modules\/(?!@agents\/)/.test(text));
}

const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

function needsOf(folder) {
  const { dependencies, peerDependencies, peerDependenciesMeta } = manifestOf(folder);
  return Object.keys({ ...dependencies, ...peerDependencies }).filter((one) => !peerDependenciesMeta?.[one]?.optional);
}
