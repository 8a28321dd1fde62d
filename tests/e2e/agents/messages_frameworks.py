"""The frameworks over Anthropic's Messages, as `driver.py` runs them. Their client adds `/v1` itself."""

from typing import Any

from tests.e2e.agents.task import INSTRUCTIONS, KEY, QUESTION, TASK, Order, Trip, compare, weather

THINKING: dict[str, Any] = {"type": "enabled", "budget_tokens": 2048}
MOST = 8192


async def pydantic_ai_anthropic(order: Order) -> object:
    """Run `pydantic_ai.Agent` over Messages; structured by its own tool, for it takes schemas to models' own names."""
    from anthropic import AsyncAnthropic
    from pydantic_ai import Agent  # type: ignore[import-not-found]
    from pydantic_ai.models.anthropic import (  # type: ignore[import-not-found]
        AnthropicModel,
        AnthropicModelSettings,
    )
    from pydantic_ai.providers.anthropic import AnthropicProvider  # type: ignore[import-not-found]

    client = AsyncAnthropic(base_url=order["url"].removesuffix("/v1"), api_key=KEY, max_retries=0)
    model = AnthropicModel(order["model"], provider=AnthropicProvider(anthropic_client=client))
    if order["scenario"] == "structured":
        return (await Agent(model, output_type=Trip).run(QUESTION)).output
    settings = AnthropicModelSettings(anthropic_thinking=THINKING, max_tokens=MOST)
    agent = Agent(model, instructions=INSTRUCTIONS, tools=[weather, compare], model_settings=settings)
    if not order["stream"]:
        return (await agent.run(TASK)).output
    async with agent.run_stream(TASK) as run:
        return await run.get_output()


async def langgraph_anthropic(order: Order) -> object:
    """Run LangChain's agent with `ChatAnthropic`."""
    from langchain.agents import create_agent  # type: ignore[import-not-found]
    from langchain_anthropic import ChatAnthropic  # type: ignore[import-not-found]

    url = order["url"].removesuffix("/v1")
    settings: dict[str, Any] = {"base_url": url, "api_key": KEY, "max_retries": 0, "max_tokens": MOST}
    if order["scenario"] == "structured":
        model = ChatAnthropic(model=order["model"], streaming=order["stream"], **settings)
        return await model.with_structured_output(Trip).ainvoke(QUESTION)
    model = ChatAnthropic(model=order["model"], streaming=order["stream"], thinking=THINKING, **settings)
    agent = create_agent(model, tools=[weather, compare], system_prompt=INSTRUCTIONS)
    state = await agent.ainvoke({"messages": [{"role": "user", "content": TASK}]})
    return state["messages"][-1].text
