// What tests of several packages share. Private; never a dependency of what is published.
export { CuttingProxy } from './proxy.ts';
export type { Cut, CutOptions } from './proxy.ts';
export { freePort, startServer } from './servers.mjs';
export type { RunningServer, ServerOptions } from './servers.mjs';
export { startNode, startProcess } from './process.ts';
export type { ChildProgram } from './process.ts';
export { faultKinds, faultOperations, faultResult, faultStart, faultTable, makeChange, meetFault } from './faults.ts';
export type { FaultKind, FaultOperation, FaultOutcome, FaultSubject } from './faults.ts';
