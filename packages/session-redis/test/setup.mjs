// Finds or starts the Redis that the tests share; its address comes by the environment.
import { provide } from '../../../scripts/services.mjs';

export default () => provide(['redis']);
