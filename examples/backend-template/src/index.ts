export { Database } from './database.ts';
export { TemplateSession } from './session.ts';
export type { TemplateSessionOptions } from './session.ts';
export { TemplateSessionStore } from './store.ts';
