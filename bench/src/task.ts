import { z } from 'zod';

/** The tool of the task: its name, what it says of itself, its arguments, its work. */
export const toolName = 'get_weather';
export const description = 'Tells the weather of a city.';
export const parameters: z.ZodObject<{ city: z.ZodString }> = z.object({ city: z.string() });
export function weather({ city }: { city: string }): string {
  return `7 °C in ${city}`;
}

export const instructions = 'Answer with the weather.';
export const question = 'What is the weather in Oslo?';

/** What the model answers: first the call, then the text. */
export const toolArguments = '{"city":"Oslo"}';
export const answer = 'It is 7 °C in Oslo.';
export const tokens = { input: 20, output: 10 };

/** The streamed answer, in the pieces in which it comes. */
export const pieces: readonly string[] = Array.from({ length: 5_000 }, (_, index) => `word${index} `);
export const longAnswer: string = pieces.join('');

/** Tells a model that is called twice a run which of its calls this is. */
export function firstOfTwo(): () => boolean {
  let calls = 0;
  return () => calls++ % 2 === 0;
}
