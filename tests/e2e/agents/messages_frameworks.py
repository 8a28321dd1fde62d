"""The frameworks over Anthropic's Messages, as `driver.py` runs them. Their client adds `/v1` itself."""

from typing import Any

from tests.e2e.agents.shared_runs import run_langchain, run_pydantic_ai
from tests.e2e.agents.task import KEY, QUESTION, Order, Trip

THINKING: dict[str, Any] = {"type": "enabled", "budget_tokens": 2048}
MOST = 8192


async def pydantic_ai_anthropic(order: Order) -> object:
    """Run `pydantic_ai.Agent` over Messages. Structured output uses its own tool, because it uses schemas only for
    models with known names."""
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import (  # type: ignore[import-not-found]
        AnthropicModel,
        AnthropicModelSettings,
    )
    from pydantic_ai.providers.anthropic import AnthropicProvider  # type: ignore[import-not-found]

    client = AsyncAnthropic(base_url=order["url"].removesuffix("/v1"), api_key=KEY, max_retries=0)
    model = AnthropicModel(order["model"], provider=AnthropicProvider(anthropic_client=client))
    settings = AnthropicModelSettings(anthropic_thinking=THINKING, max_tokens=MOST)
    return await run_pydantic_ai(order, model, settings, by_schema=False)


async def langgraph_anthropic(order: Order) -> object:
    """Run LangChain's agent with `ChatAnthropic`."""
    from langchain_anthropic import ChatAnthropic  # type: ignore[import-not-found]

    url = order["url"].removesuffix("/v1")
    settings: dict[str, Any] = {"base_url": url, "api_key": KEY, "max_retries": 0, "max_tokens": MOST}
    if order["scenario"] == "structured":
        model = ChatAnthropic(model=order["model"], streaming=order["stream"], **settings)
        return await model.with_structured_output(Trip).ainvoke(QUESTION)
    model = ChatAnthropic(model=order["model"], streaming=order["stream"], thinking=THINKING, **settings)
    return await run_langchain(model)
