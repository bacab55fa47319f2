import type { Measurement, Row } from '../rows.ts';
import { backendNames, backends } from './backends.ts';
import type { BackendName } from './backends.ts';

const both = ['bare', '@agents/core'] as const;
const own = ['@agents/core'] as const;

const traffic: readonly Row[] = [
  { title: '… statements of an append', unit: '' },
  { title: '… round trips of an append', unit: '' },
  { title: '… round trips of the last 20', unit: '' },
];

function measurementOf(name: BackendName): Measurement {
  const { title, server, slow = false } = backends[name];
  const rows: readonly Row[] = [
    { title: `${title}: append of 4 to 100,000`, unit: 'µs', goals: [{ atMost: 2, of: { peer: 'bare' } }] },
    { title: '… last 20 of 100,000', unit: 'µs', goals: [{ atMost: 2, of: { peer: 'bare' } }] },
    { title: '… of last 20 of 1,000', unit: '×', peers: own, goals: [{ atMost: 1.25 }] },
    { title: '… its memory', unit: '×', peers: own, goals: [{ atMost: 1.25 }] },
  ];
  const measured = { name, peers: both, together: true, once: true, slow } as const;
  return server === undefined ? { ...measured, rows } : { ...measured, server, rows: [...rows, ...traffic] };
}

const put = 'SQLite: put of 4, append of 4 by SQLiteSession';
const besideLangGraph: readonly Measurement[] = [
  {
    name: 'langgraph-postgres',
    peers: ['LangGraph', '@agents/core'],
    together: true,
    once: true,
    server: 'postgres',
    rows: [
      {
        title: 'PostgreSQL: put of 4, append of 4 by DrizzleSession, node-postgres',
        unit: 'µs',
        goals: [{ atMost: 1, of: { peer: 'LangGraph' } }],
      },
    ],
  },
  {
    name: 'langgraph-sqlite',
    peers: ['LangGraph', '@agents/core'],
    together: true,
    once: true,
    rows: [
      { title: put, unit: 'µs', goals: [{ atMost: 1, of: { peer: 'LangGraph' } }] },
      {
        title: '… by DrizzleSession, better-sqlite3',
        unit: 'µs',
        peers: own,
        goals: [{ atMost: 1, of: { peer: 'LangGraph', row: put } }],
      },
    ],
  },
];

export const sessionMeasurements: readonly Measurement[] = [...backendNames.map(measurementOf), ...besideLangGraph];
