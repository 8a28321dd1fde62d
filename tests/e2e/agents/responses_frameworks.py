"""The frameworks over Responses, as `driver.py` runs them."""

from typing import Any

from tests.e2e.agents.shared_runs import run_langchain, run_openai_agents, run_pydantic_ai
from tests.e2e.agents.task import EFFORT, KEY, QUESTION, Order, Trip


async def pydantic_ai_responses(order: Order) -> object:
    """Run `pydantic_ai.Agent` over Responses. Non-streaming structured output uses its own tool, streamed output the
    vendor's schema."""
    from pydantic_ai.models.openai import (  # type: ignore[import-not-found]
        OpenAIResponsesModel,
        OpenAIResponsesModelSettings,
    )
    from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]

    model = OpenAIResponsesModel(order["model"], provider=OpenAIProvider(base_url=order["url"], api_key=KEY))
    settings = OpenAIResponsesModelSettings(openai_reasoning_effort=EFFORT, openai_reasoning_summary="detailed")
    return await run_pydantic_ai(order, model, settings)


async def langgraph_responses(order: Order) -> object:
    """Run LangChain's agent with `ChatOpenAI` over Responses. Without streaming, the gateway stores the
    conversation."""
    from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]

    settings: dict[str, Any] = {"base_url": order["url"], "api_key": KEY, "max_retries": 0, "use_responses_api": True}
    if order["scenario"] == "structured":
        model = ChatOpenAI(model=order["model"], streaming=order["stream"], **settings)
        return await model.with_structured_output(Trip).ainvoke(QUESTION)
    # If the conversation is not stored, the reasoning comes back encrypted.
    kept = {"include": ["reasoning.encrypted_content"]} if order["stream"] else {"use_previous_response_id": True}
    reasoning = {"effort": EFFORT, "summary": "detailed"}
    model = ChatOpenAI(model=order["model"], streaming=order["stream"], reasoning=reasoning, **kept, **settings)
    return await run_langchain(model)


async def openai_agents_default(order: Order) -> object:
    """Run OpenAI's agents with their defaults: over Responses, and by the model's name alone."""
    from agents import OpenAIResponsesModel  # type: ignore[import-not-found]

    return await run_openai_agents(order, OpenAIResponsesModel, {"effort": EFFORT, "summary": "detailed"})
