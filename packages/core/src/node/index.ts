// `@agents/core/node`: what needs a Node-like runtime.
export { FileSession } from './file-session.ts';
