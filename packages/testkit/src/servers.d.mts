export { freePort } from '../../../scripts/servers.mjs';
export { provide, startServer } from '../../../scripts/services.mjs';
export type { RunningServer, ServerOptions } from '../../../scripts/services.mjs';
