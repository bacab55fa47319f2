import type { ToolLookupKey } from './record.ts';
import { text } from './invocation.ts';

/** A function tool, or a function call, as far as names go. A tool's namespace is an object, a call's a text. */
export interface NamedFunction {
  readonly name: string;
  readonly namespace?: string | { readonly name: string } | null | undefined;
  readonly deferLoading?: boolean | undefined;
}

/**
 * Key of a function tool, or the one that a call means by its own names (TOOL §9.1); `undefined` without a name.
 * A call whose namespace repeats its name means a deferred top-level tool.
 */
export function lookupKeyOf(named: NamedFunction): ToolLookupKey | undefined {
  const { name } = named;
  if (text(name) === undefined) return undefined;
  const namespace = text(typeof named.namespace === 'object' ? named.namespace?.name : named.namespace);
  if (namespace === name || (named.deferLoading === true && namespace === undefined))
    return { kind: 'deferred_top_level', name };
  return namespace === undefined ? { kind: 'bare', name } : { kind: 'namespaced', namespace, name };
}

/** Under which key, besides its owner, decisions on a function are kept (STATE §5.1). */
export function approvalKeyOf(key: ToolLookupKey): string {
  switch (key.kind) {
    case 'bare':
      return key.name;
    case 'namespaced':
      return `${key.namespace}.${key.name}`;
    case 'deferred_top_level':
      return `deferred_top_level:${key.name}`;
    default:
      return key satisfies never;
  }
}

/** Whether two keys name the same tool. */
export function sameLookupKey(a: ToolLookupKey, b: ToolLookupKey): boolean {
  return (
    a.kind === b.kind && a.name === b.name && (a.kind !== 'namespaced' || a.namespace === (b as typeof a).namespace)
  );
}

/** A name with its namespace, as people read it; one that only repeats the name says nothing. */
export function qualifiedNameOf(name: string, namespace: string | null | undefined): string {
  return namespace && namespace !== name ? `${namespace}.${name}` : name;
}
