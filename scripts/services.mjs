// What tests need beside the packages: programs and servers of the machine. Each has a variable by which tests find it.
// Looked for in order: the variable, a program on PATH, Debian's package where apt-get works (root). What is missing
// fails the tests that need it, and only these, with a text that says how to get it: never a skip.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { environment, step, StepError } from './bootstrap.mjs';

/**
 * `variable` holds what tests use, `programs` are names on PATH, of which the first found counts, `packages` are Debian's.
 * (A server will also have how it is started, and its variable an address.)
 */
const services = {
  chromium: {
    variable: 'TEST_CHROMIUM',
    is: 'the path of a Chromium or Chrome',
    programs: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    packages: ['chromium'],
  },
};

export const serviceNames = Object.keys(services);

/** The variable in which a test reads why its service is not there. */
const missing = (variable) => `${variable}_MISSING`;

function onPath(programs) {
  for (const program of programs)
    for (const folder of (process.env.PATH ?? '').split(delimiter))
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

/** The value of the variable, or an error whose message says how to get it. */
async function find(name, { is, variable, programs, packages }) {
  const given = process.env[variable];
  if (given) {
    if (!existsSync(given)) throw new StepError(`${variable} is ${given}, which is not there.`);
    return given;
  }
  let program = onPath(programs);
  let log = '';
  if (program === undefined && canInstall()) {
    try {
      await install(name, packages);
    } catch (error) {
      if (!(error instanceof StepError)) throw error;
      log = `\n${error.message}\n${error.log.trimEnd()}`;
    }
    program = onPath(programs);
  }
  if (program !== undefined) return program;
  throw new StepError(
    `No ${name} (on PATH: ${programs.join(', ')}). Install it, on Debian by "apt-get install -y ${packages.join(' ')}" as root, or set ${variable} to ${is}.${log}`,
  );
}

/**
 * Finds or installs services and puts their variables into this process and the processes that it starts. Never fails: the text
 * of what is missing goes to the tests, and to the terminal.
 */
export async function provide(names) {
  await Promise.all(
    names.map(async (name) => {
      const service = services[name];
      const { variable } = service;
      if (process.env[missing(variable)]) return;
      try {
        set(variable, await find(name, service));
      } catch (error) {
        if (!(error instanceof StepError)) throw error;
        console.error(error.message);
        set(missing(variable), error.message);
      }
    }),
  );
}

function set(variable, value) {
  process.env[variable] = value;
  environment[variable] = value;
}
