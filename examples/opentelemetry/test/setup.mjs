import { provide } from '../../../scripts/services.mjs';

/** A real PostgreSQL: that of the environment, else one that is started here. */
export default () => provide(['postgres']);
