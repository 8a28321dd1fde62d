"""How a framework carries out an order, for every API of its model."""

from collections.abc import Mapping

from tests.e2e.agents.task import INSTRUCTIONS, KEY, QUESTION, TASK, Foreign, Order, Trip, compare, weather


async def run_pydantic_ai(order: Order, model: Foreign, settings: Foreign, by_schema: bool = True) -> object:
    """Run `pydantic_ai.Agent`. Structured output uses its own tool, or the vendor's schema if it is streamed and
    `by_schema`."""
    from pydantic_ai import Agent, NativeOutput  # type: ignore[import-not-found]

    if order["scenario"] == "structured":
        agent = Agent(model, output_type=NativeOutput(Trip) if by_schema and order["stream"] else Trip)
        return (await agent.run(QUESTION)).output
    agent = Agent(model, instructions=INSTRUCTIONS, tools=[weather, compare], model_settings=settings)
    if not order["stream"]:
        return (await agent.run(TASK)).output
    async with agent.run_stream(TASK) as run:
        return await run.get_output()


async def run_langchain(model: Foreign) -> object:
    """Run LangChain's agent with the tools."""
    from langchain.agents import create_agent  # type: ignore[import-not-found]

    agent = create_agent(model, tools=[weather, compare], system_prompt=INSTRUCTIONS)
    state = await agent.ainvoke({"messages": [{"role": "user", "content": TASK}]})
    return state["messages"][-1].text


async def run_openai_agents(order: Order, kind: Foreign, thinking: Mapping[str, str]) -> object:
    """Run OpenAI's agents over a kind of model."""
    from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled  # type: ignore[import-not-found]
    from openai import AsyncOpenAI  # type: ignore[import-not-found]
    from openai.types.shared import Reasoning  # type: ignore[import-not-found]

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=order["url"], api_key=KEY, max_retries=0)
    model = kind(model=order["model"], openai_client=client)
    if order["scenario"] == "structured":
        agent = Agent(name="planner", model=model, output_type=Trip)
        task = QUESTION
    else:
        settings = ModelSettings(reasoning=Reasoning(**thinking))
        tools = [function_tool(weather), function_tool(compare)]
        agent = Agent(name="weather", instructions=INSTRUCTIONS, model=model, tools=tools, model_settings=settings)
        task = TASK
    if not order["stream"]:
        return (await Runner.run(agent, task)).final_output
    run = Runner.run_streamed(agent, task)
    async for _ in run.stream_events():
        pass
    return run.final_output
