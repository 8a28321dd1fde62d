"""A process that runs agent frameworks: it reads a JSON line, runs the agent, and writes a JSON line with the result.

    PYTHONPATH=DIRECTORY python -S -m tests.e2e.agents.driver

It imports only the standard library, pydantic and the ordered frameworks. An order has `framework`, `url` (with `/v1`),
`model`, `stream` and `scenario`: `tools`, in which the agent has two tools and reasons, or `structured`, in which it
must give a `Trip`. The result has `output`, the `calls` of tools in order, and `error`, one of which is null.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from tests.e2e.agents.messages_frameworks import langgraph_anthropic, pydantic_ai_anthropic
from tests.e2e.agents.responses_frameworks import langgraph_responses, openai_agents_default, pydantic_ai_responses
from tests.e2e.agents.shared_runs import run_langchain, run_openai_agents, run_pydantic_ai
from tests.e2e.agents.smolagents_framework import smolagents
from tests.e2e.agents.task import CALLS, EFFORT, KEY, QUESTION, Order, Trip


async def pydantic_ai(order: Order) -> object:
    """Run `pydantic_ai.Agent` over chat completions. Non-streaming structured output uses its own tool, streamed output
    the vendor's schema."""
    from pydantic_ai.models.openai import (  # type: ignore[import-not-found]
        OpenAIChatModel,
        OpenAIChatModelSettings,
    )
    from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]

    model = OpenAIChatModel(order["model"], provider=OpenAIProvider(base_url=order["url"], api_key=KEY))
    return await run_pydantic_ai(order, model, OpenAIChatModelSettings(openai_reasoning_effort=EFFORT))


async def langgraph(order: Order) -> object:
    """Run LangChain's agent, which is a LangGraph graph, with `ChatOpenAI`."""
    from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]

    settings: dict[str, Any] = {"base_url": order["url"], "api_key": KEY, "max_retries": 0, "stream_usage": True}
    if order["scenario"] == "structured":
        model = ChatOpenAI(model=order["model"], streaming=order["stream"], **settings)
        return await model.with_structured_output(Trip).ainvoke(QUESTION)
    model = ChatOpenAI(model=order["model"], streaming=order["stream"], reasoning_effort=EFFORT, **settings)
    return await run_langchain(model)


async def openai_agents(order: Order) -> object:
    """Run OpenAI's agents over chat completions."""
    from agents import OpenAIChatCompletionsModel  # type: ignore[import-not-found]

    return await run_openai_agents(order, OpenAIChatCompletionsModel, {"effort": EFFORT})


async def instructor(order: Order) -> object:
    """Run instructor. Its structured outputs are calls of a tool, or with `stream` the vendor's schema."""
    from instructor import Mode, from_openai  # type: ignore[import-not-found]
    from openai import AsyncOpenAI  # type: ignore[import-not-found]

    client = AsyncOpenAI(base_url=order["url"], api_key=KEY, max_retries=0)
    patched = from_openai(client, mode=Mode.JSON_SCHEMA if order["stream"] else Mode.TOOLS)
    messages = [{"role": "user", "content": QUESTION}]
    return await patched.chat.completions.create(
        model=order["model"], messages=messages, response_model=Trip, max_retries=0
    )


async def instructor_forced(order: Order) -> object:
    """Run instructor with a call that it forces, by the API whose mode `scenario` names. With `stream`, read the output
    in parts."""
    from instructor import Mode, from_anthropic, from_openai

    if order["scenario"] == "messages":
        from anthropic import AsyncAnthropic

        messages = AsyncAnthropic(base_url=order["url"].removesuffix("/v1"), api_key=KEY, max_retries=0)
        patched = from_anthropic(messages, mode=Mode.ANTHROPIC_TOOLS)
    else:
        from openai import AsyncOpenAI

        chat = AsyncOpenAI(base_url=order["url"], api_key=KEY, max_retries=0)
        patched = from_openai(chat, mode=Mode.TOOLS)
    asked = {"model": order["model"], "messages": [{"role": "user", "content": QUESTION}], "response_model": Trip}
    asked |= {"max_retries": 0, "max_tokens": 500}
    if not order["stream"]:
        return await patched.create(**asked)
    return [partial async for partial in patched.create_partial(**asked)][-1]


FRAMEWORKS: Mapping[str, Callable[[Order], Any]] = {
    function.__name__: function
    for function in (
        *(pydantic_ai, langgraph, openai_agents, instructor),
        *(pydantic_ai_responses, langgraph_responses, openai_agents_default),
        *(pydantic_ai_anthropic, langgraph_anthropic, instructor_forced, smolagents),
    )
}


async def run(order: Order) -> dict[str, object]:
    """Carry out one order. An exception of the framework is its result."""
    CALLS.clear()
    try:
        output = await asyncio.wait_for(FRAMEWORKS[order["framework"]](order), 60)
    except Exception as error:
        cause = error.__cause__ or error
        return {"output": None, "calls": [*CALLS], "error": f"{type(error).__name__}: {error}; {cause!r}"[:4000]}
    plain = output.model_dump(mode="json") if isinstance(output, BaseModel) else output
    return {"output": plain, "calls": [*CALLS], "error": None}


def main() -> None:
    os.environ["LANGSMITH_TRACING"] = "false"
    with asyncio.Runner() as runner:  # one loop for all orders: LangChain keeps its HTTP client
        for line in sys.stdin:
            outcome = runner.run(run(json.loads(line)))
            print(json.dumps(outcome, default=str), flush=True)


if __name__ == "__main__":
    main()
