import { ApiRefusal } from './types.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Strict mode wants closed objects with every property required. */
export function checkStrictSchema(schema: unknown, what: string, param: string, code: string): void {
  const problem = problemOf(schema, []);
  if (problem !== undefined) throw new ApiRefusal(`Invalid schema for ${what}: ${problem}`, { param, code });
}

function problemOf(node: unknown, path: readonly string[]): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  const schema = node as Schema;
  const context = `In context=(${path.map((key) => `'${key}'`).join(', ')})`;
  if (schema['oneOf'] !== undefined) return `${context}, 'oneOf' is not permitted.`;
  if (isObjectSchema(schema)) {
    if (schema['additionalProperties'] !== false)
      return `${context}, 'additionalProperties' is required to be supplied and to be false.`;
    const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
    const missing = Object.keys((schema['properties'] as object | undefined) ?? {}).find((name) => !required.has(name));
    if (missing !== undefined)
      return `${context}, 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`;
  }
  return (
    firstProblem(schema['properties'], [...path, 'properties']) ??
    firstProblem(schema['$defs'], [...path, '$defs']) ??
    firstProblem(schema['anyOf'], [...path, 'anyOf']) ??
    problemOf(schema['items'], [...path, 'items'])
  );
}

function firstProblem(children: unknown, path: readonly string[]): string | undefined {
  for (const [key, child] of Object.entries((children as object | undefined) ?? {})) {
    const problem = problemOf(child, [...path, key]);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function isObjectSchema(schema: Schema): boolean {
  return (
    schema['type'] === 'object' ||
    (Array.isArray(schema['type']) && schema['type'].includes('object')) ||
    schema['properties'] !== undefined
  );
}
