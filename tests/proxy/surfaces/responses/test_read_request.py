"""Complete bodies: the bodies of real clients, and every error of a body reported at once."""

from pathlib import Path

import orjson
import pytest

from providers.json_types import JsonObject
from providers.unified_request import Operation
from proxy.errors import GatewayError
from proxy.surfaces.responses.request_draft import NamespacedName, ResponsesRequest
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import NO_CONTEXT, RequestContext
from tests.proxy.surfaces.responses.kit import ask, losses, messages_of, native_body, refused, typed

BODIES = Path(__file__).resolve().parents[3] / "fixtures" / "responses"


def parsed(name: str, context: RequestContext = NO_CONTEXT) -> ResponsesRequest:
    return RESPONSES.parse(Operation.CHAT, (BODIES / f"{name}.json").read_bytes(), None, context)


def roles(request: ResponsesRequest) -> list[object]:
    return [message["role"] for message in messages_of(request)]


def test_codex_with_a_model_it_does_not_know_is_read_whole() -> None:
    """Functions, a namespace, a search, and all earlier items again."""
    request = parsed("codex_responses")
    assert roles(request) == ["developer", "developer", "user", "user", "assistant", "tool", "tool"]
    turn = messages_of(request)[4]
    assert turn["content"] == "Editing"
    assert turn["reasoning_content"] == "let me edit"
    *offered, search = request.params["tools"]
    assert search == typed("web_search", external_web_access=True)
    names = [str(tool["function"]["name"]) for tool in offered]  # type: ignore[index,call-overload]
    assert "multi_agent_v1__spawn_agent" in names
    assert request.terms.origins["multi_agent_v1__spawn_agent"] == NamespacedName("multi_agent_v1", "spawn_agent")
    assert losses(request).left_out == ("client_metadata",)
    assert not request.terms.store
    assert request.terms.summary
    assert not losses(request).binding


def test_codex_with_a_model_it_knows_edits_by_a_custom_tool() -> None:
    request = parsed("codex_responses_apply_patch")
    calls = messages_of(request)[4]["tool_calls"]
    assert isinstance(calls, list)
    assert [call["type"] for call in calls if isinstance(call, dict)] == ["custom"]
    kinds = [tool["type"] for tool in request.params["tools"]]
    assert kinds.count("custom") == 1
    assert request.terms.typed == {"tool_search": "tool_search"}
    assert request.params["verbosity"] == "low"
    kept = [tool["type"] for tool in orjson.loads((BODIES / "codex_responses_apply_patch.json").read_bytes())["tools"]]
    assert [tool["type"] for tool in native_body(request)["tools"]] == kept  # type: ignore[index,union-attr,call-overload]


def test_the_second_step_of_the_ai_sdk_refers_to_items_of_the_first() -> None:
    unique = "000000000000000000000001"
    thought: JsonObject = typed("reasoning", id=f"rs_{unique}_0", summary=[typed("summary_text", text="hm")])
    said: JsonObject = typed(
        "message", id=f"msg_{unique}_1", role="assistant", content=[typed("output_text", text="x")]
    )
    context = RequestContext(items={str(item["id"]): item for item in (thought, said)})
    request = parsed("vercel_ai_sdk_responses", context)
    assert roles(request) == ["user", "assistant", "tool"]
    turn = messages_of(request)[1]
    assert (turn["content"], turn["reasoning_content"]) == ("x", "hm")
    assert turn["tool_calls"]
    assert request.terms.store


def test_every_problem_of_a_body_is_told() -> None:
    facts = refused(input=[{"role": "x"}], tools=3, temperature=9, store=3)
    assert [problem.param for problem in facts.problems] == ["temperature", "store", "input.0.role", "tools"]


def test_a_body_without_an_input_or_a_model_or_with_a_field_twice_is_refused() -> None:
    with pytest.raises(GatewayError) as caught:
        RESPONSES.parse(Operation.CHAT, b"{}", None)
    assert {problem.param for problem in caught.value.facts.problems} == {"input", "model"}
    assert RESPONSES.parse(Operation.CHAT, b'{"input":"x"}', "v/m").model == "v/m"
    with pytest.raises(GatewayError) as caught:
        RESPONSES.parse(Operation.CHAT, b'{"model":"m","input":"x","input":"y"}', None)
    assert caught.value.facts.param == "input"


def test_the_response_repeats_the_request() -> None:
    terms = ask(instructions="x", metadata={"a": "b"}, store=False, tools=[typed("web_search")]).terms
    assert terms.echoes["instructions"] == "x"
    assert terms.echoes["metadata"] == {"a": "b"}
    assert terms.echoes["tools"] == [{"type": "web_search"}]
    assert terms.echoes["tool_choice"] == "auto"
    assert not terms.store


def test_the_elements_in_arguments_of_calls_are_bounded() -> None:
    dense = "[" + "[]," * 70_000 + "[]]"
    calls = [typed("function_call", call_id="c", name="f", arguments=dense) for _ in range(3)]
    assert refused(input=[*calls]).param == "input"
