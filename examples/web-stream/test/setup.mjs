// Finds the browser, or installs it; what a test needs of that comes by the environment.
import { provide } from '../../../scripts/services.mjs';

export default () => provide(['chromium']);
