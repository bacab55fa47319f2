export { freePort } from '../../../scripts/servers.mjs';
export { startServer } from '../../../scripts/services.mjs';
