// What tests need beside the packages: programs and servers of the machine. Each has a variable by which tests find it.
// Looked for in order: the variable, a program on PATH, Debian's package where apt-get works (root). What is missing
// fails the tests that need it, and only these, with a text that says how to get it: never a skip.
// A server whose variable gives no address is started, on a port and in a folder of its own, and stopped at the end.
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { environment, root, step, StepError } from './bootstrap.mjs';
import { pythonEnvironment } from './python.mjs';
import { answers, launch } from './servers.mjs';

const isRoot = process.getuid?.() === 0;
/** Its user may not be root unless it is told which one to be. */
const mariadbUser = isRoot ? ['--user=mysql'] : [];

/** PostgreSQL refuses to run as root: before a command. */
const becoming = (user) => (isRoot ? ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups'] : []);

/** Makes what a server needs in its folder, which is its user's then. */
async function asUser(user, folder, command) {
  if (isRoot) await step(`Giving ${folder} to ${user}`, 'chown', [user, folder]);
  const [program, ...args] = [...(user === 'postgres' ? becoming(user) : []), ...command];
  await step(`Preparing ${folder}`, program, args);
}

/** The first message of a client of PostgreSQL: length, version 3.0 of the protocol, who and where. */
const postgresHello = (() => {
  const body = Buffer.from('\0\x03\0\0user\0test\0database\0postgres\0\0', 'latin1');
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
})();

/**
 * `variable` holds what tests use (the path of a program, the address of a server), `programs` are names on PATH, or in one of
 * `folders`, of which the first found counts, `packages` are Debian's. A `server` says how it is started: all functions get
 * `{ program, folder, port, durable, config }`: `durable` for servers whose acknowledged writes have to outlive them, `config` a file of its settings; `prepare` makes
 * what it needs in its folder (which may have it already), `stopSignal` (default `TERM`) is how it is asked to end.
 * `otherwise`: the program when none is found. `prepared`: makes of the program what tests use.
 */
const services = {
  chromium: {
    variable: 'TEST_CHROMIUM',
    is: 'the path of a Chromium or Chrome',
    programs: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    packages: ['chromium'],
  },
  python: {
    variable: 'TEST_PYTHON',
    is: 'the path of a Python 3.10 or newer with openai-agents 0.24 and the drivers of its sessions',
    programs: ['python3'],
    packages: ['python3', 'python3-venv'],
    prepared: pythonEnvironment,
  },
  redis: {
    variable: 'TEST_REDIS_URL',
    is: 'the address of a Redis 7 or newer that may be written to (redis://127.0.0.1:6379)',
    programs: ['redis-server'],
    packages: ['redis-server'],
    server: {
      command: ({ program, config, folder, port, durable }) => [
        program,
        ...(config === undefined ? [] : [config]),
        '--port',
        port,
        '--bind',
        '127.0.0.1',
        '--dir',
        folder,
        '--save',
        '',
        ...(durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []),
      ],
      url: ({ port }) => `redis://127.0.0.1:${port}`,
      // One that wants a password is up, too.
      ready: async ({ port }) =>
        (await answers(port, 'PING\r\n', '+PONG')) || (await answers(port, 'PING\r\n', '-NOAUTH')),
    },
  },
  postgres: {
    variable: 'TEST_POSTGRES_URL',
    is: 'the address of a PostgreSQL 14 or newer that may be written to (postgres://user:password@127.0.0.1:5432/test)',
    programs: ['initdb'],
    packages: ['postgresql'],
    folders: postgresFolders(),
    server: {
      prepare: ({ program, folder }) =>
        existsSync(join(folder, 'PG_VERSION'))
          ? undefined
          : asUser('postgres', folder, [
              program,
              '-D',
              folder,
              '-U',
              'test',
              '-A',
              'trust',
              '-E',
              'UTF8',
              '--locale=C',
              '-N',
            ]),
      command: ({ program, folder, port, durable }) => [
        ...becoming('postgres'),
        join(dirname(realpathSync(program)), 'postgres'),
        `-D${folder}`,
        `-p${port}`,
        `-k${folder}`,
        '-h127.0.0.1',
        '-cmax_connections=200',
        '-clog_min_messages=fatal',
        ...(durable ? [] : ['-c', 'fsync=off', '-c', 'synchronous_commit=off', '-c', 'full_page_writes=off']),
      ],
      // Does not wait for clients that are still there.
      stopSignal: 'INT',
      url: ({ port }) => `postgres://test@127.0.0.1:${port}/postgres`,
      // `R`: it lets `test` in. While it starts up it takes connections, too, and answers with an error.
      ready: ({ port }) => answers(port, postgresHello, 'R'),
    },
  },
  mariadb: {
    variable: 'TEST_MARIADB_URL',
    is: 'the address of a MariaDB or MySQL 8 that may be written to (mysql://user:password@127.0.0.1:3306/test)',
    programs: ['mariadb-install-db'],
    packages: ['mariadb-server'],
    server: {
      prepare: ({ program, folder }) =>
        existsSync(join(folder, 'mysql'))
          ? undefined
          : asUser('mysql', folder, [
              program,
              '--no-defaults',
              `--datadir=${folder}`,
              '--auth-root-authentication-method=normal',
              '--skip-test-db',
              ...mariadbUser,
            ]),
      command: ({ folder, port, durable }) => [
        onPath(['mariadbd'], ['/usr/sbin', '/usr/libexec']) ?? 'mariadbd',
        '--no-defaults',
        `--datadir=${folder}`,
        `--port=${port}`,
        `--socket=${join(folder, 'mariadb.sock')}`,
        '--bind-address=127.0.0.1',
        '--skip-name-resolve',
        ...mariadbUser,
        `--innodb-flush-log-at-trx-commit=${durable ? 1 : 0}`,
        ...(durable ? [] : ['--innodb-doublewrite=0', '--innodb-flush-method=nosync']),
      ],
      url: ({ port }) => `mysql://root@127.0.0.1:${port}/mysql`,
      ready: ({ port }) => answers(port),
    },
  },
  mongo: {
    variable: 'TEST_MONGO_URL',
    is: 'the address of a MongoDB 7 or newer that may be written to (mongodb://127.0.0.1:27017)',
    programs: ['mongod'],
    packages: [],
    // Debian has none, and a download is not for tests: the server of packages/mongo-server, on the pinned Node.
    otherwise: 'node',
    server: {
      command: ({ program, folder, port, durable }) =>
        program === 'node'
          ? [
              program,
              '--no-warnings',
              join(root, 'packages/mongo-server/src/main.ts'),
              '--port',
              port,
              ...(durable ? ['--folder', folder] : []),
            ]
          : [program, '--dbpath', folder, '--port', port, '--bind_ip', '127.0.0.1', '--quiet'],
      url: ({ port }) => `mongodb://127.0.0.1:${port}/?directConnection=true`,
      ready: ({ port }) => answers(port),
    },
  },
};

/** Debian keeps the programs of a server's version together, and off PATH. */
function postgresFolders() {
  const all = '/usr/lib/postgresql';
  const versions = existsSync(all) ? readdirSync(all) : [];
  return versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(all, version, 'bin'));
}

export const serviceNames = Object.keys(services);

/** The variable in which a test reads why its service is not there. */
const missing = (variable) => `${variable}_MISSING`;

function onPath(programs, folders = []) {
  for (const program of programs)
    for (const folder of [...(process.env.PATH ?? '').split(delimiter), ...folders])
      if (folder !== '' && existsSync(join(folder, program))) return join(folder, program);
  return undefined;
}

const canInstall = () => process.getuid?.() === 0 && onPath(['apt-get']) !== undefined;

async function install(name, packages) {
  const options = { env: { ...environment, DEBIAN_FRONTEND: 'noninteractive' } };
  const lock = ['-o', 'DPkg::Lock::Timeout=300'];
  const get = () =>
    step(
      `Installing ${name}`,
      'apt-get',
      [...lock, 'install', '-y', '-q', '--no-install-recommends', ...packages],
      options,
    );
  try {
    await get();
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    // A fresh machine has no package lists yet, an old one has those of packages that are gone.
    await step('Fetching the package lists', 'apt-get', [...lock, 'update', '-q'], options);
    await get();
  }
}

/** The path of the program, or an error whose message says how to get it. */
async function find(name, { is, variable, programs, packages, folders, otherwise }) {
  let program = onPath(programs, folders) ?? otherwise;
  let log = '';
  if (program === undefined && canInstall()) {
    try {
      await install(name, packages);
    } catch (error) {
      if (!(error instanceof StepError)) throw error;
      log = `\n${error.message}\n${error.log.trimEnd()}`;
    }
    program = onPath(programs, folders);
  }
  if (program !== undefined) return program;
  throw new StepError(
    `No ${name} (on PATH: ${programs.join(', ')}). Install it, on Debian by "apt-get install -y ${packages.join(' ')}" as root, or set ${variable} to ${is}.${log}`,
  );
}

/**
 * Finds or installs services, starts those that are servers, and puts their variables into this process and the processes
 * that it starts. Never fails: the text of what is missing goes to the tests, and to the terminal. Gives a function that
 * stops what was started. As a project's `globalSetup` of vitest: `export default () => provide(['redis'])`.
 */
export async function provide(names) {
  const started = [];
  await Promise.all(
    names.map(async (name) => {
      const service = services[name];
      const { variable } = service;
      if (process.env[missing(variable)]) return;
      try {
        set(variable, await valueOf(name, service, started));
      } catch (error) {
        if (!(error instanceof StepError)) throw error;
        const text = [error.message, error.log].filter(Boolean).join('\n');
        console.error(text);
        set(missing(variable), text);
      }
    }),
  );
  return async () => {
    for (const { variable, server } of started.splice(0)) {
      for (const variables of [process.env, environment]) delete variables[variable];
      await server.stop();
    }
  };
}

async function valueOf(name, service, started) {
  const { variable, server } = service;
  const given = process.env[variable];
  if (given && !server && !existsSync(given)) throw new StepError(`${variable} is ${given}, which is not there.`);
  if (given) return given;
  const program = await find(name, service);
  if (!server) return (await service.prepared?.(program)) ?? program;
  const running = await launch(name, server, program);
  started.push({ variable, server: running });
  return running.url;
}

/**
 * A server for one test file alone, whatever the variable says: to be cut off, killed and started again. `options` as those
 * of `launch` in servers.mjs; stop it when done.
 * @throws StepError that says how to get the program
 */
export async function startServer(name, options) {
  const service = services[name];
  return await launch(name, service.server, await find(name, service), options);
}

function set(variable, value) {
  process.env[variable] = value;
  environment[variable] = value;
}
