import type { Fault } from './plan.ts';
import { isNested } from './sites.ts';
import type { SiteName } from './sites.ts';

/** What the world throws on purpose. */
export class Planned extends Error {}

/** Not only errors are thrown. */
export function thrownBy({ site, kind, variant }: Fault, seed: number): Error {
  const message = `planned: ${site} ${kind} of seed ${seed}`;
  switch (variant % 8) {
    case 0:
      return message as unknown as Error;
    case 1:
      return Object.freeze(new Planned(message));
    case 2:
      return new DOMException(message, 'AbortError');
    default:
      return new Planned(message);
  }
}

/** What a guardrail says that does not accept. */
export function trips(site: SiteName, variant: number): unknown {
  if (site.includes('guardrail.tool')) return { behavior: { type: 'raise_exception' } };
  return { tripwireTriggered: true, outputInfo: variant };
}

/** The same number for the same text. */
export function hash(text: string): number {
  let sum = 7;
  for (let index = 0; index < text.length; index += 1) sum = (Math.imul(sum, 31) + text.charCodeAt(index)) | 0;
  return sum >>> 0;
}

const ofInner = ['agentTool.model', 'customOutputExtractor', 'inputBuilder', 'onStream'];
/** Runs of agent tools have these options of the outer run, too. */
const inherited = [
  'run.handoffInputFilter',
  'handoffHistoryMapper',
  'callModelInputFilter',
  'onApproval',
  'toolErrorFormatter',
];

/** Whether it happens in the run of an agent tool. */
export function nestedFault({ site }: Fault): 'yes' | 'no' | 'perhaps' {
  if (isNested(site) || ofInner.includes(site)) return 'yes';
  return inherited.includes(site) ? 'perhaps' : 'no';
}
