import { provide } from '../../../scripts/services.mjs';

/** Real servers for the project's tests: those of the environment, else started here. */
export default () => provide(['redis', 'postgres']);
