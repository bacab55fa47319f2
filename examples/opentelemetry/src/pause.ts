// The first process: runs until somebody has to decide, and writes the state down.
import { writeFile } from 'node:fs/promises';
import { argv } from 'node:process';
import { flushTraces, run } from '@agents/core';
import { toolCall } from '@agents/core/testing';
import { enableOTelTracing } from '@agents/tracing-otel';
import { database, desk } from './desk.ts';

enableOTelTracing();
const agent = desk({
  triage: [toolCall('find_order', { id: 7 }), toolCall('transfer_to_refunds', {})],
  refunds: [toolCall('refund_order', { id: 7 })],
});
const result = await run(agent, 'Please pay back order 7.', { workflowName: 'Refund desk', groupId: 'thread-981' });
await writeFile(argv[2] ?? 'state.json', result.toState().toString());
await flushTraces();
await database.end();
