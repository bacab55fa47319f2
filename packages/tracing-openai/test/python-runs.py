"""Runs of the Python SDK whose traces are compared with ours: python-runs.py (<base url> <raw|sanitized> <run|streamed>)…"""

import asyncio
import logging
import sys

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    OpenAIResponsesModel,
    Runner,
    RunConfig,
    function_tool,
    set_trace_processors,
)
from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor
from openai import AsyncOpenAI

logging.disable(logging.CRITICAL)


def exporter_for(endpoint, sanitized):
    class SanitizingExporter(BackendSpanExporter):
        """Takes the fake service for OpenAI's own."""

        _OPENAI_TRACING_INGEST_ENDPOINT = endpoint

    return (SanitizingExporter if sanitized else BackendSpanExporter)(api_key="k", endpoint=endpoint)


@function_tool
def lookup(order: str) -> str:
    return f"order {order} is paid" if len(order) < 5 else "x" * 150_000


@function_tool
def broken(order: str) -> str:
    raise ValueError("no such table")


async def no_pii(context, agent, input):
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


async def go(form, agent, **config):
    try:
        if form == "run":
            await Runner.run(agent, "hi", run_config=RunConfig(**config))
        else:
            async for _ in Runner.run_streamed(agent, "hi", run_config=RunConfig(**config)).stream_events():
                pass
    except Exception:
        pass


async def all_runs(base_url, form):
    model = OpenAIResponsesModel("gpt-5.6-luna", AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0))
    refunds = Agent(name="Refund agent", model=model)
    guardrail = InputGuardrail(no_pii, name="no_pii")
    await go(form, Agent(name="Plain", instructions="Be brief.", model=model))
    await go(form, Agent(name="Desk", model=model, tools=[lookup, broken]), workflow_name="Refund desk", group_id="g")
    await go(form, Agent(name="Triage", model=model, handoffs=[refunds]), trace_metadata={"tenant": "acme"})
    await go(form, Agent(name="Guarded", model=model, input_guardrails=[guardrail]))
    await go(form, Agent(name="Failing", model=model))


arguments = sys.argv[1:]
for base_url, exported, form in zip(arguments[0::3], arguments[1::3], arguments[2::3]):
    processor = BatchTraceProcessor(exporter_for(f"{base_url}/traces/ingest", exported == "sanitized"))
    set_trace_processors([processor])
    asyncio.run(all_runs(base_url, form))
    processor.force_flush()
