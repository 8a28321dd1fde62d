"""smolagents over chat completions, as `driver.py` runs it.

Its agents write calls and results as text into the conversation. `ToolCallingAgent` requires a call in each step, and
ends with the tool `final_answer`. `CodeAgent` has no tools, writes Python, and stops at the end of the code.
"""

import asyncio
import io
from collections.abc import Mapping
from typing import Any

from tests.e2e.agents.task import KEY, TASK, Foreign, Order, compare, weather


async def smolagents(order: Order) -> object:
    """Run the agent that `scenario` names: `tools` or `code`."""
    from rich.console import Console  # type: ignore[import-not-found]
    from smolagents import (  # type: ignore[import-not-found]
        AgentLogger,
        CodeAgent,
        LogLevel,
        OpenAIServerModel,
        ToolCallingAgent,
    )

    model = OpenAIServerModel(
        model_id=order["model"], api_base=order["url"], api_key=KEY, client_kwargs={"max_retries": 0}
    )
    kind = ToolCallingAgent if order["scenario"] == "tools" else CodeAgent
    # It writes streamed text to the console at any level, and the driver's own responses go there.
    logger = AgentLogger(LogLevel.OFF, Console(file=io.StringIO()))
    agent = kind(tools=_tools(), model=model, max_steps=6, stream_outputs=order["stream"], logger=logger)
    return await asyncio.to_thread(agent.run, TASK)


def _tools() -> list[Foreign]:
    from smolagents import Tool

    def described(words: Mapping[str, str]) -> dict[str, Any]:
        return {name: {"type": "string", "description": text} for name, text in words.items()}

    class Weather(Tool):  # type: ignore[misc]
        name = "weather"
        description = "Return the weather of a city."
        inputs = described({"city": "The city."})
        output_type = "string"

        def forward(self, city: str) -> str:
            return weather(city)

    class Compare(Tool):  # type: ignore[misc]
        name = "compare"
        description = "Compare two reports."
        inputs = described({"first": "A report.", "second": "Another report."})
        output_type = "string"

        def forward(self, first: str, second: str) -> str:
            return compare(first, second)

    return [Weather(), Compare()]
