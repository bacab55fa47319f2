// A schema file, as in the README.
export { agentSessions, agentMessages, agentSessionOperations, agentSessionMetadata } from '@agents/session-drizzle/pg';
