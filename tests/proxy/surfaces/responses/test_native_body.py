"""The body with which a request is passed on to OpenAI's own API."""

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.thinking_envelope import seal
from tests.proxy.surfaces.responses.kit import ask, losses, native_body, typed
from tests.support.looped import looped

HI: JsonObject = {"type": "message", "role": "user", "content": "hi"}


def items(*given: JsonValue) -> JsonValue:
    return native_body(ask(input=[*given]))["input"]


def test_a_body_goes_on_as_it_came_with_members_that_nobody_knows() -> None:
    fields: dict[str, JsonValue] = {
        "instructions": "x",
        "tools": [typed("web_search")],
        "unheard_of": {"a": [1]},
        "client_metadata": {"turn": "1"},
        "max_output_tokens": 9,
    }
    assert native_body(ask(**fields)) == {"model": "m", "input": "hi", **fields}


@looped("field", [{"inference_timeout": 3}, {"n": 1}, {"seed": None}, {"stop": []}])
def test_fields_of_the_gateway_that_ask_for_nothing_there_are_left_out(field: dict[str, JsonValue]) -> None:
    assert native_body(ask(**field)) == {"model": "m", "input": "hi"}


@looped(
    "field",
    [
        {"seed": 1},
        {"stop": ["x"]},
        {"top_k": 3},
        {"guided_regex": "a"},
        {"max_tokens": 3},
        {"inference_extra_params": {"x": 1}},
        {"context_length_exceeded_behavior": "truncate"},
    ],
)
def test_what_only_the_unified_request_can_say_is_translated(field: dict[str, JsonValue]) -> None:
    assert ask(**field).native is None


def test_padding_of_events_is_off_unless_it_is_asked_for() -> None:
    assert native_body(ask(stream=True))["stream_options"] == {"include_obfuscation": False}
    wanted = ask(stream=True, stream_options={"include_obfuscation": True})
    assert native_body(wanted)["stream_options"] == {"include_obfuscation": True}
    assert "stream_options" not in native_body(ask(stream_options={"include_obfuscation": True}))


def test_ids_and_members_of_this_gateway_are_left_out() -> None:
    ours = typed("message", id="msg_u1_0", role="assistant", content="x", extra_content={"google": {}})
    theirs = {**HI, "id": "msg_68cf3b1c"}
    assert items(ours, theirs) == [typed("message", role="assistant", content="x"), theirs]


def test_what_another_vendor_thought_is_left_out_and_named() -> None:
    sealed = typed("reasoning", id="rs_u1_0", summary=[], encrypted_content=seal([{"type": "reasoning.encrypted"}]))
    plain = typed("reasoning", id="rs_u1_1", summary=[typed("summary_text", text="x")], encrypted_content=None)
    request = ask(input=[HI, sealed, plain])
    assert native_body(request)["input"] == [HI]
    assert losses(request).native_left_out == ("reasoning",)


def test_openai_s_own_thinking_passes_as_it_is() -> None:
    own = typed("reasoning", id="rs_68cf3b1c", summary=[], encrypted_content="gAAAAAB")
    stored_there = typed("reasoning", id="rs_68cf3b1d", summary=[])
    assert items(HI, own, stored_there) == [HI, own, stored_there]
