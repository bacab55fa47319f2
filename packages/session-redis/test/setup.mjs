// Finds or starts what the tests share: a Redis, and the Python SDK beside ours. What of it they use comes by the environment.
import { provide } from '../../../scripts/services.mjs';

export default () => provide(['redis', 'python']);
