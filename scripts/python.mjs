// The Python edition of the SDK beside ours, in a virtual environment of the repository, for tests of shared stores and data.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, step, StepError } from './bootstrap.mjs';

const folder = join(root, '.cache/python');
const python = join(folder, 'bin/python');
/** What is imported, and what brings it. */
const needs = {
  agents: 'openai-agents[redis]==0.24.0',
  redis: 'redis',
  aiosqlite: 'aiosqlite',
  sqlalchemy: 'sqlalchemy[asyncio]',
  asyncpg: 'asyncpg',
  aiomysql: 'aiomysql',
  pymongo: 'pymongo',
  cryptography: 'cryptography',
};

/**
 * Makes the environment where it is missing or lacks something; gives its Python.
 * @throws StepError with what went wrong
 */
export async function pythonEnvironment(program) {
  if (await isComplete()) return python;
  if (!existsSync(python)) await step('Making a virtual environment for Python', program, ['-m', 'venv', folder]);
  const packages = [...new Set(Object.values(needs))];
  await step('Installing the Python SDK', python, ['-m', 'pip', 'install', '-q', ...packages]);
  return python;
}

async function isComplete() {
  if (!existsSync(python)) return false;
  const found = Object.keys(needs).map((name) => `importlib.util.find_spec('${name}') is not None`);
  const program = `import importlib.util, sys; sys.exit(0 if all([${found.join(', ')}]) else 1)`;
  try {
    await step('Looking at the Python SDK', python, ['-c', program]);
    return true;
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    return false;
  }
}
