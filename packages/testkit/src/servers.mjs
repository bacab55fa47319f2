export { freePort } from '../../../scripts/servers.mjs';
export { provide, startServer } from '../../../scripts/services.mjs';
