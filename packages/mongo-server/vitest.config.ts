import { project } from '../../vitest.shared.ts';

export default project('mongo-server', { typeTests: false });
