// Starts a server of the machine on a port and in a folder of its own, and stops it with whoever started it.
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment, StepError } from './bootstrap.mjs';

const READY_WITHIN_MS = 60_000;

/**
 * Stops the server when its input ends: that is when this process ends, in whatever way (a `kill -9` too). USR2 kills it.
 * Arguments: the signal that stops it, the folder that goes with it (or nothing), then its command.
 */
const guard = `
  signal=$1; folder=$2; shift 2
  trap 'kill -s KILL $server' USR2
  exec 3<&0
  "$@" </dev/null 3<&- & server=$!
  (cat <&3; kill -s "$signal" $server) >/dev/null 2>&1 &
  exec 3<&-
  wait $server; code=$?
  kill -0 $server 2>/dev/null && wait $server
  [ -n "$folder" ] && rm -rf "$folder"
  exit $code`;

// Below the ports that systems give to outgoing connections (Linux from 32768, others from 49152): one of those can be taken
// by any client between the look at it and the start of the server.
const PORTS = { from: 10_240, to: 32_767 };

/** A port of this machine that nobody listens on, and that no outgoing connection gets. */
export async function freePort() {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    if (await isFree(port)) return port;
  }
}

function isFree(port) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', (error) =>
      error.code === 'EADDRINUSE' || error.code === 'EACCES' ? resolve(false) : reject(error),
    );
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

/** Whether a server on this port answers what is sent to it with a text that begins so; without a question: takes connections. */
export function answers(port, question = '', answer = '') {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (result) => {
      socket.destroy();
      resolve(result);
    };
    let text = '';
    socket.setTimeout(2000, () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
    socket.on('connect', () => (answer === '' ? end(true) : socket.write(question)));
    socket.on('data', (chunk) => {
      text += chunk;
      if (text.length >= answer.length) end(text.startsWith(answer));
    });
  });
}

/** A server under way. */
class Server {
  #child;
  #ended;

  constructor(child, { port, folder, url }) {
    this.#child = child;
    this.#ended = new Promise((resolve) => child.once('exit', resolve));
    this.port = port;
    this.folder = folder;
    this.url = url;
  }

  /** Asks it to end, waits until it did, and removes its folder unless that was given. */
  async stop() {
    this.#child.ref();
    this.#child.stdin.end();
    await this.#ended;
  }

  /** Ends it as a crash does, and waits until it is gone; to be started again on the same `folder` (one that was given) and `port`. */
  async kill() {
    this.#child.ref();
    this.#child.kill('SIGUSR2');
    await this.#ended;
  }
}

/**
 * @param name for messages
 * @param server what the table of services.mjs says of it
 * @param program its path
 * @param options `args`: more arguments of it; `durable`: what it acknowledged outlives it, for tests of faults; `folder`, `port`:
 * where an earlier one left its data; `config`: a file of its settings. A folder that was given is kept.
 * @throws StepError with what it wrote, when it does not come up
 */
export async function launch(name, server, program, options = {}) {
  const ownFolder = options.folder === undefined;
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), `agents-${name}-`));
  const port = options.port ?? (await freePort());
  const place = { program, folder, port, durable: options.durable ?? false, config: options.config };
  try {
    await server.prepare?.(place);
    const command = [...server.command(place), ...(options.args ?? [])].map(String);
    const child = spawn(
      'sh',
      ['-c', guard, 'guard', server.stopSignal ?? 'TERM', ownFolder ? folder : '', ...command],
      {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: environment,
        // Ctrl-C at the terminal is for whoever started it; the end of the input reaches the server from there.
        detached: true,
      },
    );
    child.stdin.on('error', () => {});
    await ready(name, server, place, child);
    // It does not keep the process alive whose end stops it.
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref();
    return new Server(child, { port, folder, url: server.url(place) });
  } catch (error) {
    if (ownFolder) rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function ready(name, server, place, child) {
  let log = '';
  const keep = (chunk) => (log = (log + chunk).slice(-20_000));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let ended = false;
  child.once('exit', () => (ended = true));
  const until = Date.now() + READY_WITHIN_MS;
  while (!(await server.ready(place))) {
    if (!ended && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      continue;
    }
    child.stdin.end();
    throw new StepError(
      ended ? `${name} ended while it started.` : `${name} did not come up within ${READY_WITHIN_MS / 1000} s.`,
      log,
    );
  }
}
