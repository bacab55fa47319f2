// `node --import ./telemetry.mjs app.js`
import { register } from 'node:module';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { defaultResource, detectResources, envDetector } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

// Without this line only what needs no patched module is traced.
register('@opentelemetry/instrumentation/hook.mjs', import.meta.url);

new NodeTracerProvider({
  // Who sends: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
  resource: defaultResource().merge(detectResources({ detectors: [envDetector] })),
  // Where to: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_TRACES_HEADERS.
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
}).register();
registerInstrumentations({
  instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation(), new PgInstrumentation()],
});
