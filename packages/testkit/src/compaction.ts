// `@agents/testkit/compaction`: a compaction of a session that others write to meanwhile.
import assert from 'node:assert/strict';

import type { AgentInputItem } from '@agents/core';
import { OpenAICompactionSession } from '@agents/core/openai';
import type { ManagedSession } from '@agents/core/session';
import { FakeOpenAI } from '@agents/core/testing';

const user = (content: string) => ({ role: 'user', content }) as const;
const said = (content: string): AgentInputItem =>
  ({ type: 'message', role: 'assistant', content }) as unknown as AgentInputItem;
const answers = (count: number): AgentInputItem[] => Array.from({ length: count }, (_, n) => said(`a${n}`));
const summary = { type: 'compaction', id: 'cmp', encrypted_content: 'short' } as unknown as AgentInputItem;

/** @param meanwhile while the service makes the summary */
async function compacting(
  session: ManagedSession,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<OpenAICompactionSession> {
  const client = await new FakeOpenAI().client({ maxRetries: 0 });
  Object.assign(client.responses, {
    compact: async () => {
      await meanwhile();
      return { id: 'resp_c', object: 'response.compaction', created_at: 1, output: [summary] };
    },
  });
  return new OpenAICompactionSession(session, { client });
}

/**
 * A compaction keeps what another process appended meanwhile, and changes of its own wait for its end.
 *
 * @param open a session of always the same history, which is empty; each object as another process has it
 * @throws AssertionError
 */
export async function checkCompactionBesideOthers(open: () => ManagedSession): Promise<void> {
  const session = open();
  let own: Promise<unknown> = Promise.resolve();
  const wrapper = await compacting(session, async () => {
    await open().addItems([user('from elsewhere')]);
    own = wrapper.addItems([user('own')]);
  });
  await wrapper.addItems([user('q'), ...answers(10)]);
  await wrapper.runCompaction();
  await own;
  assert.deepEqual(await session.getItems(), [summary, user('from elsewhere'), user('own')]);
}

/**
 * Whether there is enough to compact is counted anew when another process changed the history.
 *
 * @param open as above
 * @throws AssertionError
 */
export async function checkCandidatesBesideOthers(open: () => ManagedSession): Promise<void> {
  const wrapper = await compacting(open());
  await wrapper.addItems([said('1')]);
  await wrapper.deferCompaction('resp_1');
  assert.equal(wrapper.deferredResponseId, undefined);
  await open().addItems(answers(9));
  await wrapper.deferCompaction('resp_2');
  assert.equal(wrapper.deferredResponseId, 'resp_2');
}
