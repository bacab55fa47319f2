// What tests need beside the packages: programs and servers of the machine. Each has a variable by which tests find it.
// Looked for in order: the variable, a program on PATH, Debian's package where apt-get works (root). What is missing
// fails the tests that need it, and only these, with a text that says how to get it: never a skip.
// A server whose variable gives no address is started, on a port and in a folder of its own, and stopped at the end.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { environment, step, StepError } from './bootstrap.mjs';
import { answers, launch } from './servers.mjs';

/**
 * `variable` holds what tests use (the path of a program, the address of a server), `programs` are names on PATH, or in one of
 * `folders`, of which the first found counts, `packages` are Debian's. A `server` says how it is started: all functions get
 * `{ program, folder, port, durable }`, the last for servers whose acknowledged writes have to outlive them; `prepare` makes
 * what it needs in its folder (which may have it already), `stopSignal` (default `TERM`) is how it is asked to end.
 */
const services = {
  chromium: {
    variable: 'TEST_CHROMIUM',
    is: 'the path of a Chromium or Chrome',
    programs: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    packages: ['chromium'],
  },
  redis: {
    variable: 'TEST_REDIS_URL',
    is: 'the address of a Redis 7 or newer that may be written to (redis://127.0.0.1:6379)',
    programs: ['redis-server'],
    packages: ['redis-server'],
    server: {
      command: ({ program, folder, port, durable }) => [
        program,
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
      ready: ({ port }) => answers(port, 'PING\r\n', '+PONG'),
    },
  },
};

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
async function find(name, { is, variable, programs, packages, folders }) {
  let program = onPath(programs, folders);
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
  if (!server) return program;
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
