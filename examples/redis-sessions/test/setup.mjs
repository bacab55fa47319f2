// The Redis that the test command did not start yet.
import { provide } from '../../../scripts/services.mjs';

export default () => provide(['redis']);
