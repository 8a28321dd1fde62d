"""The frameworks over Responses, as `driver.py` runs them."""

from typing import Any

from tests.e2e.agents.task import EFFORT, INSTRUCTIONS, KEY, QUESTION, TASK, Order, Trip, compare, weather


async def pydantic_ai_responses(order: Order) -> object:
    """Run `pydantic_ai.Agent` over Responses; structured by its own tool, streamed by the vendor's schema."""
    from pydantic_ai import Agent, NativeOutput  # type: ignore[import-not-found]
    from pydantic_ai.models.openai import (  # type: ignore[import-not-found]
        OpenAIResponsesModel,
        OpenAIResponsesModelSettings,
    )
    from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]

    model = OpenAIResponsesModel(order["model"], provider=OpenAIProvider(base_url=order["url"], api_key=KEY))
    if order["scenario"] == "structured":
        agent = Agent(model, output_type=NativeOutput(Trip) if order["stream"] else Trip)
        return (await agent.run(QUESTION)).output
    settings = OpenAIResponsesModelSettings(openai_reasoning_effort=EFFORT, openai_reasoning_summary="detailed")
    agent = Agent(model, instructions=INSTRUCTIONS, tools=[weather, compare], model_settings=settings)
    if not order["stream"]:
        return (await agent.run(TASK)).output
    async with agent.run_stream(TASK) as run:
        return await run.get_output()


async def langgraph_responses(order: Order) -> object:
    """Run LangChain's agent with `ChatOpenAI` over Responses; whole, the gateway keeps the conversation."""
    from langchain.agents import create_agent  # type: ignore[import-not-found]
    from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]

    settings: dict[str, Any] = {"base_url": order["url"], "api_key": KEY, "max_retries": 0, "use_responses_api": True}
    if order["scenario"] == "structured":
        model = ChatOpenAI(model=order["model"], streaming=order["stream"], **settings)
        return await model.with_structured_output(Trip).ainvoke(QUESTION)
    # Without the conversation being kept, what was thought comes back sealed.
    kept = {"include": ["reasoning.encrypted_content"]} if order["stream"] else {"use_previous_response_id": True}
    reasoning = {"effort": EFFORT, "summary": "detailed"}
    model = ChatOpenAI(model=order["model"], streaming=order["stream"], reasoning=reasoning, **kept, **settings)
    agent = create_agent(model, tools=[weather, compare], system_prompt=INSTRUCTIONS)
    state = await agent.ainvoke({"messages": [{"role": "user", "content": TASK}]})
    return state["messages"][-1].text


async def openai_agents_default(order: Order) -> object:
    """Run OpenAI's agents as they come: over Responses, and by the model's name alone."""
    from agents import (  # type: ignore[import-not-found]
        Agent,
        ModelSettings,
        OpenAIResponsesModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI  # type: ignore[import-not-found]
    from openai.types.shared import Reasoning  # type: ignore[import-not-found]

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=order["url"], api_key=KEY, max_retries=0)
    model = OpenAIResponsesModel(model=order["model"], openai_client=client)
    if order["scenario"] == "structured":
        agent = Agent(name="planner", model=model, output_type=Trip)
        task = QUESTION
    else:
        settings = ModelSettings(reasoning=Reasoning(effort=EFFORT, summary="detailed"))
        tools = [function_tool(weather), function_tool(compare)]
        agent = Agent(name="weather", instructions=INSTRUCTIONS, model=model, tools=tools, model_settings=settings)
        task = TASK
    if not order["stream"]:
        return (await Runner.run(agent, task)).final_output
    run = Runner.run_streamed(agent, task)
    async for _ in run.stream_events():
        pass
    return run.final_output
