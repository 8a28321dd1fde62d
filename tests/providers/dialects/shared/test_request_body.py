"""The writers of request fields, and the finished upstream request."""

from dataclasses import replace

import orjson
import pytest

from providers.capabilities import NATIVE, Capabilities, Cell, compiled, emulated, refused
from providers.constraints.constraint_styles import Encoding, Unenforceable, style_by_kind
from providers.dialects.shared.request_body import (
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    finish_request,
    listed,
    own_constraint_cells,
    plain,
    put_fields,
    put_unknown,
    raw_only,
    unknown_cell,
    unless_neutral,
)
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Guided, LogprobsWanted, Operation, UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of, text_request
from tests.providers.kit import refusal_of
from tests.support.looped import looped

TARGET = target_of("cohere")
ASKED = chat_request()
SCHEMA: JsonObject = {"type": "object"}


def draft(request: UnifiedRequest = ASKED, **cells: Cell) -> RequestBody:
    decided = {name.replace("__", "."): cell for name, cell in cells.items()}
    return RequestBody(request, TARGET, Capabilities(compiled((), decided)), {})


def refusal(put: FieldWriter, value: object, **cells: Cell) -> Refusal:
    return refusal_of(put, draft(chat_request(max_tokens=1), **cells), value)


def written(put: FieldWriter, value: object, **cells: Cell) -> JsonObject:
    work = draft(ASKED, **cells)
    put(work, value)
    return work.body


def test_a_dot_leads_into_a_nested_member() -> None:
    work = draft()
    work.put("options.a", 1)
    work.put("options.b.c", 2)
    work.put("d", 3)
    assert work.body == {"options": {"a": 1, "b": {"c": 2}}, "d": 3}


def test_fields_are_written_left_out_or_refused() -> None:
    work = draft(chat_request(seed=1, n=1, stop=("a",), tools=[]))
    put_fields(work, {"seed": plain("options.seed"), "stop": listed("stops")}, {"tools"})
    assert work.body == {"options": {"seed": 1}, "stops": ["a"]}
    with pytest.raises(Refusal, match="because") as caught:
        put_fields(draft(chat_request(min_p=0.5), min_p=refused("because")), {})
    assert (caught.value.param, caught.value.code) == ("min_p", "unsupported_parameter")


def test_a_default_of_the_surface_is_left_out_instead() -> None:
    request = replace(chat_request(min_p=0.5, seed=1), injected=frozenset({"min_p"}))
    work = draft(request)
    put_fields(work, {"seed": plain("seed")})
    assert work.body == {"seed": 1}


def test_a_choice_inside_an_object_has_no_log_probabilities_of_its_own() -> None:
    work = draft(chat_request(logprobs=LogprobsWanted(0, "content")))
    work.unwrap = True
    with pytest.raises(Refusal, match="logprobs"):
        put_fields(work, {"logprobs": plain("logprobs")})


def test_neutral_values_may_be_left_out() -> None:
    assert written(unless_neutral("top_k", plain("k")), -1) == {}
    assert written(unless_neutral("top_k", plain("k")), 4) == {"k": 4}
    assert written(listed("stop"), ()) == {}


@looped(
    ("low", "high", "limits"),
    [(0, 1, "at least 0 and at most 1"), (3, None, "at least 3"), (None, 0, "at most 0"), (1, 1, "1")],
)
def test_a_bound_is_told(low: float | None, high: float | None, limits: str) -> None:
    put = bounded("seed", "s", low, high)
    bad = 1 if low is None else low - 1
    refused_value = refusal(put, bad)
    assert f"must be {limits}" in refused_value.message
    # A field with only one value has no effect, so it may be dropped.
    assert refused_value.code == ("unsupported_parameter" if low == high else "invalid_value")
    assert written(put, 0 if low is None else low) == {"s": 0 if low is None else low}


def test_a_value_out_of_bounds_that_asks_for_nothing_is_left_out() -> None:
    assert written(bounded("top_k", "k", 1, 5), -1) == {}


def test_the_end_of_the_window_matters_only_beside_a_limit() -> None:
    blind = refused("blind")
    refusing = refusal(check_limited_window, "error", context_length_exceeded_behavior__error=blind)
    assert refusing.message.endswith("blind.")
    check_limited_window(draft(chat_request(), context_length_exceeded_behavior__error=blind), "error")
    check_limited_window(draft(chat_request(max_tokens=1), context_length_exceeded_behavior__error=NATIVE), "error")


def _encoding(name: str) -> Encoding:
    def make(wanted: Guided) -> JsonObject:
        if wanted.value == "bad":
            raise Unenforceable("it is bad")
        return {name: list(wanted.value) if isinstance(wanted.value, tuple) else wanted.value}

    return Encoding(emulated("somehow") if name == "choice" else NATIVE, make)


STYLE = replace(style_by_kind(_encoding), object_by_schema=True)


@looped(
    ("value", "body"),
    [
        (Guided("json", SCHEMA), {"json": SCHEMA}),
        (Guided("choice", ("a",)), {"choice": ["a"]}),
        ({"type": "text"}, {}),
        ({"type": "json_object"}, {"json": SCHEMA}),
        ({"type": "json_object", "schema": {"a": 1}}, {"json": {"a": 1}}),
        ({"type": "json_schema", "json_schema": {"schema": {"a": 1}}}, {"json": {"a": 1}}),
        ({"type": "grammar", "grammar": "g"}, {"grammar": "g"}),
    ],
)
def test_constraints_are_written_by_their_kind(value: object, body: JsonObject) -> None:
    formats = {f"response_format__{kind}": NATIVE for kind in ("json_object", "json_schema", "grammar")}
    decided = {**formats, "guided_json": NATIVE, "guided_choice": NATIVE}
    assert written(constraint_writer(STYLE), value, **decided) == body


def test_a_json_mode_with_a_schema_is_a_schema() -> None:
    write = constraint_writer(STYLE)
    value: JsonObject = {"type": "json_object", "schema": SCHEMA}
    cells = {"response_format__json_object": refused("no"), "response_format__json_schema": NATIVE}
    assert written(write, value, **cells) == {"json": SCHEMA}
    assert refusal(write, {"type": "json_object"}, **cells).param == "response_format"
    assert refusal(write, value, response_format__json_schema=refused("no")).param == "response_format"


def test_the_json_mode_may_have_members_of_its_own() -> None:
    write = constraint_writer(replace(STYLE, json_mode={"mode": "json"}))
    value: JsonObject = {"type": "json_object"}
    assert written(write, value, response_format__json_object=NATIVE) == {"mode": "json"}


def test_what_the_gateway_has_a_part_in_is_named() -> None:
    work = draft(guided_choice=emulated("somehow"))
    constraint_writer(STYLE)(work, Guided("choice", ("a",)))
    assert work.emulated == ["guided_choice"]


@looped(
    ("value", "param", "words"),
    [
        (Guided("regex", "a"), "guided_regex", "no patterns"),
        (Guided("grammar", "bad"), "guided_grammar", "it is bad"),
        ({"type": "json_schema"}, "response_format", "needs a schema"),
        ({"type": "json_schema", "json_schema": {}}, "response_format", "needs a schema"),
        ({"type": "structural_tag"}, "response_format", "no response_format of type 'structural_tag'"),
    ],
)
def test_constraints_that_cannot_be_kept_are_refused(value: object, param: str, words: str) -> None:
    found = refusal(constraint_writer(STYLE), value, guided_regex=refused("no patterns"), guided_grammar=NATIVE)
    assert found.param == param
    assert words in found.message


def test_values_of_another_kind_are_a_fault_of_ours() -> None:
    with pytest.raises(TypeError):
        written(constraint_writer(STYLE), 3)


def test_an_api_without_structural_tags_has_the_other_cells_of_its_style() -> None:
    cells = own_constraint_cells(STYLE)
    assert "response_format.structural_tag" not in cells
    assert (cells["guided_choice"], cells["response_format.json_object"]) == (emulated("somehow"), NATIVE)


def test_an_endpoint_of_raw_prompts_refuses_chats_with_its_reason() -> None:
    table = draft(messages=refused("it is raw"), prompt=NATIVE).table
    assert raw_only(text_request(), TARGET, table) is table
    with pytest.raises(Refusal, match="it is raw") as caught:
        raw_only(chat_request(), TARGET, table)
    assert caught.value.param == "messages"


def test_unknown_fields_go_along_where_the_vendor_takes_them() -> None:
    request = replace(chat_request(), unknown={"a": 1})
    work = draft(request, unknown=NATIVE)
    put_unknown(work)
    assert work.body == {"a": 1}
    with pytest.raises(Refusal, match="already") as caught:
        put_unknown(work)
    assert caught.value.code == "conflicting_parameters"
    with pytest.raises(Refusal) as caught:
        put_unknown(draft(request, unknown=refused("no")))
    assert caught.value.param == "a"
    assert unknown_cell(load_profiles()["vllm"]) == NATIVE
    assert unknown_cell(load_profiles()["cohere"]).refused


def test_a_finished_call_has_the_clients_members_on_top() -> None:
    request = replace(chat_request(), extra_params={"o": {"b": 2}}, extra_headers={"x-a": "1"}, stream=True)
    work = draft(request)
    work.put("o.a", 1)
    work.emulated += ["n", "n"]
    sent = finish_request(work, Operation.CHAT, "/p", ("o.c", "model"), {"a": "b"})
    assert orjson.loads(sent.body) == {"o": {"a": 1, "b": 2}}
    assert (sent.url, sent.stream, sent.emulated) == ("https://api.cohere.com/p", True, ("n",))
    assert (dict(sent.headers), dict(sent.tool_names)) == ({"x-a": "1"}, {"a": "b"})


def test_the_client_s_own_tools_stand_beside_the_request_s_functions() -> None:
    search: JsonObject = {"type": "web_search"}
    request = replace(chat_request(), extra_params={"tools": [search]})
    made = draft(request)
    assert orjson.loads(finish_request(made, Operation.CHAT, "/p", ()).body)["tools"] == [search]
    function: JsonObject = {"type": "function", "function": {"name": "f"}}
    made.body["tools"] = [function]
    assert orjson.loads(finish_request(made, Operation.CHAT, "/p", ()).body)["tools"] == [function, search]
    assert made.body["tools"] == [function]


@pytest.mark.parametrize("extra", [{"o": {"c": 1}}, {"model": "x"}])
def test_no_client_sets_what_is_not_its_to_set(extra: JsonObject) -> None:
    refusal = refusal_of(
        finish_request, draft(replace(chat_request(), extra_params=extra)), Operation.CHAT, "/p", ("o.c", "model")
    )
    assert (refusal.param, refusal.code) == ("inference_extra_params", "invalid_value")
