"""Plans of plain-text conversations: all other fields are checked and adapted as in any request."""

from dataclasses import replace

import orjson
import pytest

from providers.emulation.plan_calls import plan_calls
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Params, UnifiedRequest
from tests.providers.dialects.openai.kit import chat, target
from tests.support.looped import looped

ENGINE = target("vllm")
"""An engine in the operator's own network."""

PLAIN = chat(prompt=ChatPrompt(({"role": "user", "content": "hi"},), plain=True))
PATH: JsonObject = {"lora_path": "/models/x"}


@looped(
    "request_",
    [
        replace(PLAIN, unknown=PATH),
        replace(PLAIN, extra_params=PATH),
        replace(PLAIN, params=Params(tools=[{"type": "mcp", "server_url": "http://10.0.0.1"}])),
        replace(PLAIN, params=Params(tools=[{"type": "mcp", **PATH}], tool_choice="auto")),
    ],
)
def test_members_beside_plain_texts_are_checked(request_: UnifiedRequest) -> None:
    assert len(plan_calls(PLAIN, ENGINE).calls) == 1
    with pytest.raises(Refusal, match="is not sent to"):
        plan_calls(request_, ENGINE)


def test_a_choice_of_tools_beside_plain_texts_is_adapted() -> None:
    tools: list[JsonObject] = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]
    choice: JsonObject = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "a"}}]},
    }
    plan = plan_calls(replace(PLAIN, params=Params(tools=tools, tool_choice=choice)), target("groq"))
    assert orjson.loads(plan.calls[0].sent.body)["tools"] == tools[:1]
    assert plan.emulated == ("tool_choice",)
