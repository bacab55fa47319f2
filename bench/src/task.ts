import { z } from 'zod';

/** What a model does in a run: in each of its turns it calls the tool, then it answers. */
export interface Script {
  readonly turns: number;
  /** Of the tool, in each turn. */
  readonly calls: number;
  /** How long the model takes. Default: no time at all. */
  readonly latencyMs?: number;
  /** Default `false`. */
  readonly traced?: boolean;
}

export const toolName = 'get_weather';
export const description = 'Tells the weather of a city.';
export const parameters: z.ZodObject<{ city: z.ZodString }> = z.object({ city: z.string() });
export function weather({ city }: { city: string }): string {
  return `7 °C in ${city}`;
}

export const instructions = 'Answer with the weather.';
export const question = 'What is the weather in Oslo?';
export const toolArguments = '{"city":"Oslo"}';
export const answer = 'It is 7 °C in Oslo.';
export const tokens = { input: 20, output: 10 };

/** Unique in a run. */
export function callIds(turn: number, { calls }: Script): string[] {
  // Not `Array.from`, which takes longer than what some of this is measured for.
  const ids: string[] = [];
  for (let index = 0; index < calls; index += 1) ids.push(`call_${turn}_${index}`);
  return ids;
}

/** A streamed answer in the pieces in which it comes. */
export function textPieces(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `word${index} `);
}

/** For what a measurement has no use for. */
export function notMeasured(): never {
  throw new Error('Not part of this measurement.');
}
