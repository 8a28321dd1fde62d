"""Fields outside the unified request that may be sent to an engine."""

from dataclasses import replace

from providers.client_extras.engine_members import check_members, path_text
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.target import Permits
from providers.unified_request import ChatPrompt, UnifiedRequest
from tests.providers.dialects.openai.kit import chat, completion, target
from tests.support.looped import looped

ENGINE = target("vllm")


def refusal(request: UnifiedRequest, *allowed: str) -> Refusal | None:
    try:
        check_members(request, replace(ENGINE, permits=Permits(frozenset(allowed))))
    except Refusal as refused:
        return refused
    return None


def message(**members: object) -> UnifiedRequest:
    made: JsonObject = {"role": "user", "content": "hi", **members}  # type: ignore[dict-item]
    return chat(prompt=ChatPrompt((made,)))


@looped(
    ("request_", "param", "named"),
    [
        (replace(completion(), unknown={"top_a": 1, "lora_path": "x"}), "lora_path", "'lora_path'"),
        (replace(completion(), unknown={"a": {"b": ["/x/y"]}}), "a", "'a.b[0]'"),
        (replace(chat(), extra_params={"chat_template": "x"}), "inference_extra_params.chat_template",
         "'inference_extra_params.chat_template'"),
        (message(mm={"path": "x"}), "messages", "'messages[0].mm.path'"),
        (chat({"tools": [{"type": "mcp", "server_url": "x"}]}), "tools", "'tools[0].server_url'"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_field_the_deployment_the_reason_and_the_setting(
    request_: UnifiedRequest, param: str, named: str
) -> None:
    refused = refusal(request_)
    assert refused is not None
    assert (refused.param, refused.code) == (param, "unsupported_parameter")
    assert refused.message.startswith(f"{named} is not sent to {ENGINE.name}: it ")
    assert "`allow_fields: [" in refused.message


def test_what_the_table_allows_passes() -> None:
    assert refusal(replace(completion(), unknown={"lora_path": "x"}), "lora_path") is None
    assert refusal(message(mm={"path": "x"}), "path") is None


def test_turns_of_a_model_are_texts() -> None:
    call: JsonObject = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"url":"http://h/"}'}}
    assert (
        refusal(message(name="/a/b", tool_calls=[call], reasoning_content="http://h/", cache_control={"x": 1})) is None
    )


def test_fields_that_the_engine_s_row_refuses_anyway_are_left_to_it() -> None:
    check_members(replace(completion(), unknown={"lora_path": "x"}), target("tgi_native"))


def test_a_path_is_written_with_dots_and_brackets() -> None:
    assert path_text(("a", 0, "b")) == ".a[0].b"
    assert path_text(()) == ""


def test_thinking_that_clients_send_back_is_no_locator() -> None:
    details: list[object] = [{"type": "reasoning.encrypted", "data": "/etc/passwd", "url": "http://inner"}]
    for name in ("reasoning_details", "thinking_blocks", "provider_specific_fields"):
        assert refusal(message(**{name: details})) is None
