// Before everything else: modules that are imported from now on can be instrumented.
import { register } from 'node:module';

register('@opentelemetry/instrumentation/hook.mjs', import.meta.url);
