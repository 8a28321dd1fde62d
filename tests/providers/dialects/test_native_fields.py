"""Ways to write a field, and the finished call."""

from dataclasses import replace

import orjson
import pytest

from providers.capabilities import NATIVE, Capabilities, Cell, compiled, emulated, refused
from providers.dialects.native_fields import (
    ANY_OBJECT,
    Draft,
    Put,
    Way,
    at_window,
    bounded,
    choices_of,
    constrained,
    finished,
    listed,
    plain,
    put_fields,
    put_unknown,
    raw_only,
    schema_of,
    unknown_cell,
    unless_neutral,
)
from providers.failure import Refusal
from providers.guided import Unenforceable
from providers.profiles import load_profiles
from providers.unified import Guided, JsonObject, LogprobsWanted, Operation, UnifiedRequest
from tests.providers.dialects.native_kit import chat_request, target_of, text_request

TARGET = target_of("cohere")
ASKED = chat_request()
SCHEMA: JsonObject = {"type": "object"}


def draft(request: UnifiedRequest = ASKED, **cells: Cell) -> Draft:
    decided = {name.replace("__", "."): cell for name, cell in cells.items()}
    return Draft(request, TARGET, Capabilities(compiled((), decided)), {})


def refusal(put: Put, value: object, **cells: Cell) -> Refusal:
    with pytest.raises(Refusal) as caught:
        put(draft(chat_request(max_tokens=1), **cells), value)
    return caught.value


def written(put: Put, value: object, **cells: Cell) -> JsonObject:
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


@pytest.mark.parametrize(
    ("low", "high", "limits"),
    [(0, 1, "at least 0 and at most 1"), (3, None, "at least 3"), (None, 0, "at most 0"), (1, 1, "1")],
)
def test_a_bound_is_told(low: float | None, high: float | None, limits: str) -> None:
    put = bounded("seed", "s", low, high)
    bad = 1 if low is None else low - 1
    assert f"must be {limits} on " in refusal(put, bad).message
    assert refusal(put, bad).code == "invalid_value"
    assert written(put, 0 if low is None else low) == {"s": 0 if low is None else low}


def test_a_value_out_of_bounds_that_asks_for_nothing_is_left_out() -> None:
    assert written(bounded("top_k", "k", 1, 5), -1) == {}


def test_the_end_of_the_window_matters_only_beside_a_limit() -> None:
    blind = refused("blind")
    refusing = refusal(at_window, "error", context_length_exceeded_behavior__error=blind)
    assert refusing.message.endswith("blind.")
    at_window(draft(chat_request(), context_length_exceeded_behavior__error=blind), "error")
    at_window(draft(chat_request(max_tokens=1), context_length_exceeded_behavior__error=NATIVE), "error")


def _way(member: str) -> Way:
    def put(work: Draft, wanted: Guided) -> None:
        if wanted.value == "bad":
            raise Unenforceable("it is bad")
        work.put(member, wanted.value if isinstance(wanted.value, str | dict) else list(wanted.value))

    return put


WAYS = {"json": _way("schema"), "choice": _way("choice"), "grammar": _way("grammar")}


@pytest.mark.parametrize(
    ("value", "body"),
    [
        (Guided("json", SCHEMA), {"schema": SCHEMA}),
        (Guided("choice", ("a",)), {"choice": ["a"]}),
        ({"type": "text"}, {}),
        ({"type": "json_object"}, {"schema": ANY_OBJECT}),
        ({"type": "json_object", "schema": {"a": 1}}, {"schema": {"a": 1}}),
        ({"type": "json_schema", "json_schema": {"schema": {"a": 1}}}, {"schema": {"a": 1}}),
        ({"type": "grammar", "grammar": "g"}, {"grammar": "g"}),
    ],
)
def test_constraints_are_written_by_their_kind(value: object, body: JsonObject) -> None:
    formats = {f"response_format__{kind}": NATIVE for kind in ("json_object", "json_schema", "grammar")}
    decided = {**formats, "guided_json": NATIVE, "guided_choice": NATIVE}
    assert written(constrained(WAYS), value, **decided) == body


def test_a_json_mode_with_a_schema_is_a_schema() -> None:
    put = constrained({"json": lambda draft, guided: draft.put("schema", schema_of(guided))})
    value: JsonObject = {"type": "json_object", "schema": SCHEMA}
    cells = {"response_format__json_object": refused("no"), "response_format__json_schema": NATIVE}
    assert written(put, value, **cells) == {"schema": SCHEMA}
    assert refusal(put, {"type": "json_object"}, **cells).param == "response_format"
    assert refusal(put, value, response_format__json_schema=refused("no")).param == "response_format"


def test_the_json_mode_may_be_said_in_its_own_way() -> None:
    put = constrained(WAYS, plain("mode"))
    value: JsonObject = {"type": "json_object"}
    assert written(put, value, response_format__json_object=NATIVE) == {"mode": value}


def test_a_structural_tag_is_said_where_there_are_any() -> None:
    value: JsonObject = {"type": "structural_tag", "format": {}}
    assert written(constrained(WAYS, tag=plain("tag")), value) == {"tag": value}


def test_what_the_gateway_has_a_part_in_is_named() -> None:
    work = draft(guided_choice=emulated("somehow"))
    constrained(WAYS)(work, Guided("choice", ("a",)))
    assert work.emulated == ["guided_choice"]


@pytest.mark.parametrize(
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
    found = refusal(constrained(WAYS), value, guided_regex=refused("no patterns"), guided_grammar=NATIVE)
    assert found.param == param
    assert words in found.message


def test_values_of_another_kind_are_a_fault_of_ours() -> None:
    with pytest.raises(TypeError):
        schema_of(Guided("choice", ("a",)))
    with pytest.raises(TypeError):
        choices_of(Guided("json", {}))
    with pytest.raises(TypeError):
        written(constrained(WAYS), 3)


def test_an_endpoint_of_raw_prompts_refuses_chats_with_its_reason() -> None:
    table = draft(messages=refused("it is raw")).table
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
    sent = finished(work, Operation.CHAT, "/p", ("o.c", "model"), {"a": "b"})
    assert orjson.loads(sent.body) == {"o": {"a": 1, "b": 2}}
    assert (sent.url, sent.stream, sent.emulated) == ("https://api.cohere.com/p", True, ("n",))
    assert (dict(sent.headers), dict(sent.tool_names)) == ({"x-a": "1"}, {"a": "b"})


@pytest.mark.parametrize("extra", [{"o": {"c": 1}}, {"model": "x"}])
def test_no_client_sets_what_is_not_its_to_set(extra: JsonObject) -> None:
    with pytest.raises(Refusal) as caught:
        finished(draft(replace(chat_request(), extra_params=extra)), Operation.CHAT, "/p", ("o.c", "model"))
    assert (caught.value.param, caught.value.code) == ("inference_extra_params", "invalid_value")
