import { mergeConfig } from 'vitest/config';

import { project } from '../../vitest.shared.ts';

export default mergeConfig(project('session-drizzle'), {
  test: {
    globalSetup: ['./test/setup.mjs'],
    // Of what @openai/agents brings, one package has an export of its TypeScript sources under our condition.
    server: { deps: { inline: [/openai[/+]agents/, /modelcontextprotocol/, /eventsource/] } },
  },
});
