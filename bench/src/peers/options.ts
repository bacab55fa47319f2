import { description, instructions, parameters, toolName, weather } from '../task.ts';

// The two SDKs that have agents take the same options.

export const agentOptions: { name: string; instructions: string } = { name: 'Weather', instructions };

export const toolOptions: {
  name: string;
  description: string;
  parameters: typeof parameters;
  execute: typeof weather;
} = { name: toolName, description, parameters, execute: weather };
