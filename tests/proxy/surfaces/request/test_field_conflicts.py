"""The interactions of fields."""

from copy import copy

from hypothesis import given as given_that
from hypothesis import strategies as st

from providers.json_types import JsonValue
from providers.unified_request import Guided, LogprobsWanted, Operation
from proxy.surfaces.request.field_conflicts import STEPS, resolve
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.request.parse_state import ParsedFields, SurfaceRules
from tests.proxy.surfaces.kit import ROWS, complete, converse, params_at_fault, refuse
from tests.proxy.surfaces.request.test_field_rules import ROWS as FIELD_ROWS
from tests.support.looped import looped

OPENAI, PAIS, FIREWORKS = ROWS["openai"], ROWS["pais"], ROWS["fireworks"]
TOOL: JsonValue = {"type": "function", "function": {"name": "f"}}
URI = "data:image/png;base64,aGk="


@looped(
    "given",
    [
        {"max_tokens": 50},
        {"max_new_tokens": 50},
        {"max_completion_tokens": 50},
        {"max_tokens": 50, "max_new_tokens": 50, "max_completion_tokens": 50},
        {"max_tokens": None, "max_new_tokens": 50},
        {"max_completion_tokens": 50.0, "max_tokens": 50},
    ],
)
def test_three_names_of_one_limit_agree(given: dict[str, JsonValue]) -> None:
    params = complete(**given).params
    assert params["max_tokens"] == 50
    assert not params.keys() & {"max_new_tokens", "max_completion_tokens"}


@looped(
    ("given", "param"),
    [
        ({"max_tokens": 50, "max_new_tokens": 60}, ["max_new_tokens"]),
        ({"max_tokens": 50, "max_completion_tokens": 60}, ["max_tokens"]),
        ({"max_completion_tokens": 1, "max_tokens": 2, "max_new_tokens": 3}, ["max_tokens", "max_new_tokens"]),
    ],
)
def test_different_limits_conflict_at_the_name_that_yields(given: dict[str, JsonValue], param: list[str]) -> None:
    facts = refuse(**given)
    assert facts.code == "conflicting_parameters"
    assert params_at_fault(facts) == param


def test_a_limit_of_nothing_goes_with_echo_everywhere_but_on_pais_and_without_it_on_openais_alone() -> None:
    for name, surface in ROWS.items():
        if name != "pais":
            assert complete(surface, max_tokens=0, echo=True).params["max_tokens"] == 0
    assert refuse(PAIS, max_tokens=0, echo=True).param == "max_tokens"
    assert complete(OPENAI, max_tokens=0).params["max_tokens"] == 0
    for name in ("scale_v4", "scale_v5", "fireworks", "pais"):
        assert refuse(ROWS[name], max_tokens=0).param == "max_tokens"


def test_a_bad_limit_is_not_also_a_conflict() -> None:
    assert params_at_fault(refuse(max_tokens="50", max_new_tokens=60)) == ["max_tokens"]


def test_stops_are_joined_in_order_without_repetition_and_none_are_absent_but_on_pais_refused() -> None:
    assert complete(stop="\n", stop_sequences=["\n", "END"]).params["stop"] == ("\n", "END")
    assert complete(stop_sequences=["b", "a"]).params["stop"] == ("b", "a")
    assert complete(stop=["a", "b", "a", "b"], stop_sequences=["c", "d"]).params["stop"] == ("a", "b", "c", "d")
    for name, row in ROWS.items():
        if name != "pais":
            assert "stop" not in complete(row, stop=[]).params
    assert refuse(PAIS, stop=[]).param == "stop"


MANY: JsonValue = [str(number) for number in range(32)]


def test_thirty_two_stops_are_accepted_and_no_more() -> None:
    for row in ROWS.values():
        assert len(complete(row, stop=MANY).params["stop"]) == 32
        facts = refuse(row, stop=[str(number) for number in range(33)])
        assert facts.param == "stop"
        assert "at most 32" in facts.message


def test_stops_are_counted_together_and_the_complaint_names_a_field_that_was_sent() -> None:
    assert "together with 'stop_sequences'" in refuse(stop=MANY, stop_sequences=["one more"]).message
    assert refuse(stop_sequences=[str(number) for number in range(33)]).param == "stop_sequences"


@looped(
    ("given", "wanted"),
    [
        ({"logprobs": 0}, LogprobsWanted(0, "legacy")),
        ({"logprobs": 5}, LogprobsWanted(5, "legacy")),
        ({"logprobs": True}, LogprobsWanted(0, "content")),
        ({"logprobs": True, "top_logprobs": 3}, LogprobsWanted(3, "content")),
        ({"logprobs": True, "top_logprobs": 20}, LogprobsWanted(20, "content")),
        ({"logprobs": 2, "top_logprobs": 4}, LogprobsWanted(4, "legacy")),
        ({"logprobs": 2, "top_logprobs": 0}, LogprobsWanted(0, "legacy")),
        ({"return_token_log_probs": True}, LogprobsWanted(0, "content")),
        ({"return_token_log_probs": True, "top_logprobs": 2}, LogprobsWanted(2, "content")),
        ({"return_token_log_probs": True, "logprobs": True}, LogprobsWanted(0, "content")),
        ({"return_token_log_probs": True, "logprobs": 1}, LogprobsWanted(1, "legacy")),
        ({"return_token_log_probs": False, "logprobs": True}, LogprobsWanted(0, "content")),
        ({"logprobs": False}, None),
        ({"logprobs": None, "return_token_log_probs": False}, None),
        ({"top_logprobs": 0}, None),
        ({"logprobs": False, "top_logprobs": 0}, None),
    ],
)
def test_log_probabilities_are_one_wish(given: dict[str, JsonValue], wanted: LogprobsWanted | None) -> None:
    params = complete(**given).params
    assert params.get("logprobs") == wanted
    assert not params.keys() & {"top_logprobs", "return_token_log_probs"}


@looped(
    ("given", "param", "code"),
    [
        ({"top_logprobs": 3}, "top_logprobs", "invalid_value"),
        ({"logprobs": False, "top_logprobs": 3}, "top_logprobs", "invalid_value"),
        ({"logprobs": False, "return_token_log_probs": True}, "return_token_log_probs", "conflicting_parameters"),
        ({"logprobs": 6}, "logprobs", "invalid_value"),
        ({"logprobs": 6, "top_logprobs": 3}, "logprobs", "invalid_value"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "invalid_value"),
    ],
)
def test_contradictory_wishes_are_refused_once(given: dict[str, JsonValue], param: str, code: str) -> None:
    facts = refuse(**given)
    assert (params_at_fault(facts), facts.code) == ([param], code)


def test_fireworks_lists_at_most_five_alternatives() -> None:
    assert refuse(FIREWORKS, logprobs=True, top_logprobs=6).param == "top_logprobs"
    assert complete(FIREWORKS, logprobs=True, top_logprobs=5).params["logprobs"].top == 5


@looped(
    ("given", "best"),
    [
        ({"best_of": 0}, None),
        ({"best_of": 1}, None),
        ({"best_of": 3, "n": 3}, None),
        ({"best_of": 3, "n": 3, "stream": True}, None),
        ({"best_of": 1, "stream": True}, None),
        ({"best_of": 0, "stream": True, "n": 4}, None),
        ({"best_of": 5, "n": 3}, 5),
    ],
)
def test_best_of_counts_only_above_n(given: dict[str, JsonValue], best: int | None) -> None:
    assert complete(**given).params.get("best_of") == best


def test_best_of_below_n_or_in_a_stream_is_refused() -> None:
    assert "n must be at most best_of" in refuse(best_of=2, n=3).message
    streamed = refuse(best_of=5, stream=True)
    assert (streamed.param, streamed.code) == ("best_of", "conflicting_parameters")


@looped("options", [{}, {"include_usage": True}])
@looped("stream", [None, False])
def test_stream_options_need_a_stream(options: JsonValue, stream: JsonValue) -> None:
    assert refuse(stream_options=options, stream=stream).param == "stream_options"


def test_stream_options_beside_a_bad_stream_are_not_blamed() -> None:
    assert params_at_fault(refuse(stream="true", stream_options={})) == ["stream"]


def test_fields_that_say_nothing_vanish() -> None:
    assert "suffix" not in complete(suffix="").params
    assert complete(suffix="x").params["suffix"] == "x"
    assert "echo_last" not in complete(echo=True, echo_last=3).params
    assert complete(echo=False, echo_last=3).params["echo_last"] == 3


def test_images_go_with_their_prompts() -> None:
    assert complete(prompt="<image> what", images=[URI]).params["images"] == ((URI,),)
    assert complete(prompt=["<image>", "b"], images=[[URI], []]).params["images"] == ((URI,), ())
    nothing: list[JsonValue] = [[], [[]], [[], []]]
    for none in nothing:
        assert "images" not in complete(prompt=["<image> stays a word", "b"], images=none).params
    assert params_at_fault(refuse(prompt="none", images=[URI])) == ["images"]
    assert params_at_fault(refuse(prompt=[], images=[URI])) == ["prompt"]


def test_images_of_a_chat_belong_into_its_messages() -> None:
    facts = refuse(OPENAI, Operation.CHAT, messages=[{"role": "user", "content": "x"}], images=[URI])
    assert (facts.param, facts.code) == ("images", "conflicting_parameters")
    assert "images" not in converse(images=[]).params


@looped(
    ("given", "guided"),
    [
        ({"guided_json": {"type": "object"}}, Guided("json", {"type": "object"})),
        ({"guided_json": "{}"}, Guided("json", {})),
        ({"guided_regex": "a+"}, Guided("regex", "a+")),
        ({"guided_choice": ["a", "ab"]}, Guided("choice", ("a", "ab"))),
        ({"guided_grammar": "root"}, Guided("grammar", "root")),
        ({"structured_outputs": {"json": {"type": "object"}}}, Guided("json", {"type": "object"})),
        ({"structured_outputs": {"json": "{}", "regex": None, "json_object": False}}, Guided("json", {})),
        ({"structured_outputs": {"regex": "a+"}}, Guided("regex", "a+")),
        ({"structured_outputs": {"choice": ["a"]}}, Guided("choice", ("a",))),
        ({"structured_outputs": {"grammar": "root"}}, Guided("grammar", "root")),
        ({"structured_outputs": {"choice": ["a"]}, "guided_choice": ["a"]}, Guided("choice", ("a",))),
        ({"json_schema": {}}, Guided("json", {})),
        ({"regex": "a+", "grammar": ""}, Guided("regex", "a+")),
        ({"choice": ["a"]}, Guided("choice", ("a",))),
        ({"ebnf": "root"}, Guided("grammar", "root")),
        ({"grammar": "root", "ebnf": "root"}, Guided("grammar", "root")),
        ({"guided_json": {}, "response_format": {"type": "text"}}, Guided("json", {})),
        ({"guided_json": {}, "guided_regex": None, "tools": []}, Guided("json", {})),
    ],
)
def test_one_guided_field_survives(given: dict[str, JsonValue], guided: Guided) -> None:
    params = complete(**given).params
    assert params["guided"] == guided
    assert params["guided"].field not in params


@looped(
    ("given", "params"),
    [
        ({"guided_json": {}, "guided_regex": "a"}, ["guided_regex"]),
        ({"regex": "a", "guided_regex": "b"}, ["regex"]),
        ({"ebnf": "a", "grammar": "b"}, ["grammar"]),
        ({"structured_outputs": {"regex": "a", "json": {}}}, ["structured_outputs.json"]),
        ({"structured_outputs": {"regex": "a"}, "guided_json": {}}, ["guided_regex"]),
        ({"structured_outputs": {"json_object": True}, "guided_json": {}}, ["guided_json"]),
        ({"guided_grammar": "g", "guided_choice": ["a"], "guided_regex": "a"}, ["guided_choice", "guided_grammar"]),
        ({"guided_json": {}, "response_format": {"type": "json_object"}}, ["guided_json"]),
        ({"guided_choice": ["a"], "tools": [TOOL]}, ["guided_choice"]),
    ],
)
def test_a_second_constraint_conflicts(given: dict[str, JsonValue], params: list[str]) -> None:
    facts = refuse(**given)
    assert (params_at_fault(facts), facts.code) == (params, "conflicting_parameters")


@looped(
    ("given", "param"),
    [
        ({"echo": True}, "echo"),
        ({"echo_last": 2}, "echo_last"),
        ({"suffix": "x"}, "suffix"),
        ({"prompt": [1, 2]}, "prompt"),
    ],
)
def test_tools_exclude_raw_text_features(given: dict[str, JsonValue], param: str) -> None:
    facts = refuse(tools=[TOOL], **given)
    assert (facts.param, facts.code) == (param, "conflicting_parameters")


def test_tools_go_with_neutral_raw_text_features() -> None:
    assert complete(tools=[TOOL], echo=False, echo_last=0, suffix="").params["tools"] == [TOOL]


def test_two_ways_to_say_how_much_to_think_conflict() -> None:
    facts = refuse(thinking={"type": "enabled"}, reasoning_effort="low")
    assert (facts.param, facts.code) == ("reasoning_effort", "conflicting_parameters")


CHECKED = {
    row.name: [FIELDS[Operation.COMPLETIONS][row.name](value) for value in (*row.same, *(it for it, _ in row.becomes))]
    for row in FIELD_ROWS
}
"""Values that each field may have after its check."""


@given_that(st.data())
def test_the_steps_that_a_request_does_not_call_for_would_change_nothing(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(CHECKED)), unique=True, max_size=8))
    values = {name: data.draw(st.sampled_from(CHECKED[name])) for name in names if CHECKED[name]}
    rules = SurfaceRules(FIELDS, {})
    some = ParsedFields(rules, Operation.COMPLETIONS, copy(values))
    every = ParsedFields(rules, Operation.COMPLETIONS, copy(values))
    resolve(some)
    for step, _ in STEPS:
        step(every)
    assert (some, [*some.values]) == (every, [*every.values])
