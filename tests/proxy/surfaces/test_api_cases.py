"""The cases of the four APIs that a surface decides, each by its number in the list of seventy-six."""

import orjson
import pytest

from providers.completion import Choice, Chunk, Completion, ContentLogprobs, TokenLogprob, ToolCall
from providers.json_types import JsonValue
from providers.unified_request import Guided, LogprobsWanted, Operation, TextPrompt, TokenPrompt
from proxy.surfaces.completion_surface import CompletionSurface
from tests.proxy.surfaces.kit import (
    FACTS,
    ROWS,
    USAGE,
    choices,
    complete,
    every_row,
    objects,
    params_at_fault,
    play,
    refuse,
    refuse_bytes,
)
from tests.support.looped import looped

OPENAI, PAIS, FIREWORKS, SCALE_V4 = ROWS["openai"], ROWS["pais"], ROWS["fireworks"], ROWS["scale_v4"]
URI = "data:image/jpeg;base64,/9j/"
USAGE_ASKED: JsonValue = {"include_usage": True}


def test_01_three_prompts_with_two_candidates_are_six_choices_in_order() -> None:
    request = complete(prompt=["a", "b", "c"], n=2)
    assert request.choices == 6
    answer = Completion(tuple(Choice(index, str(index), "stop") for index in range(6)), USAGE)
    body = orjson.loads(OPENAI.renderer(request, FACTS).completion(answer))
    assert [(choice["index"], choice["text"]) for choice in choices(body)] == [(n, str(n)) for n in range(6)]


@every_row
def test_02_four_interleaved_choices_end_in_four_finishes_and_one_usage(row: CompletionSurface) -> None:
    request = complete(row, prompt=["a", "b"], n=2, stream=True, stream_options=USAGE_ASKED)
    texts = [Chunk(index, "x") for index in (0, 2, 1, 3, 2)]
    finishes = [Chunk(index, finish_reason="stop") for index in (2, 0, 3, 1)]
    frames = objects(play(row.renderer(request, FACTS), *texts, *finishes, USAGE))
    ended = [choice["index"] for choice in choices(*frames) if choice["finish_reason"] == "stop"]
    assert ended == [2, 0, 3, 1]
    assert all(len(choices(frame)) <= 1 for frame in frames)
    assert [frame["usage"] for frame in frames if frame.get("usage")] == [
        {"prompt_tokens": 6, "completion_tokens": 2, "total_tokens": 8}
    ]


def test_03_scoring_requests_of_token_lists_keep_every_field() -> None:
    request = complete(prompt=[[1, 2], [3]], echo=True, logprobs=1, max_tokens=1, temperature=0, seed=1234)
    assert request.prompt == TokenPrompt(((1, 2), (3,)))
    assert request.params == {
        "echo": True,
        "logprobs": LogprobsWanted(1, "legacy"),
        "max_tokens": 1,
        "temperature": 0,
        "seed": 1234,
        "context_length_exceeded_behavior": "error",
    }


@every_row
@looped("logprobs", [None, 0, 5])
def test_04_and_05_scoring_alone_is_a_limit_of_nothing_with_echo(row: CompletionSurface, logprobs: JsonValue) -> None:
    if row is PAIS:
        assert refuse(row, echo=True, max_tokens=0, logprobs=logprobs).param == "max_tokens"
    else:
        assert complete(row, echo=True, max_tokens=0, logprobs=logprobs).params["max_tokens"] == 0


def test_09_a_limit_of_nothing_without_echo_is_openais_alone() -> None:
    assert complete(max_tokens=0).params["max_tokens"] == 0
    assert PAIS.error(refuse(PAIS, max_tokens=0))[0] == 422


@every_row
@looped("given", [{}, {"max_tokens": None}])
def test_10_sixteen_tokens_are_openais_default_alone(row: CompletionSurface, given: dict[str, JsonValue]) -> None:
    assert complete(row, **given).params.get("max_tokens") == (16 if row is OPENAI else None)


def test_11_two_names_of_the_limit_agree_or_conflict() -> None:
    assert complete(max_tokens=50, max_new_tokens=50).params["max_tokens"] == 50
    facts = refuse(max_tokens=50, max_new_tokens=60)
    assert (facts.code, facts.param) == ("conflicting_parameters", "max_new_tokens")


def test_12_a_null_limit_leaves_the_other_name() -> None:
    assert complete(max_tokens=None, max_new_tokens=20).params["max_tokens"] == 20


def test_13_more_candidates_than_best_of_are_refused() -> None:
    facts = refuse(best_of=2, n=3)
    assert "n must be at most best_of" in facts.message
    assert facts.param == "best_of"


def test_14_best_of_nothing_is_absent() -> None:
    assert "best_of" not in complete(best_of=0).params


def test_15_best_of_streams_only_when_it_selects_nothing() -> None:
    assert refuse(best_of=5, stream=True).param == "best_of"
    for given in ({"best_of": 1}, {"best_of": 3, "n": 3}):
        fields: dict[str, JsonValue] = {**given}
        assert complete(stream=True, **fields).stream


def test_17_an_empty_prompt_is_a_prompt() -> None:
    assert complete(prompt="").prompt == TextPrompt(("",))


def test_18_empty_lists_are_no_prompt_but_an_empty_text_in_one_is() -> None:
    assert refuse(prompt=[]).param == "prompt"
    assert refuse(prompt=[[]]).param == "prompt.0"
    assert complete(prompt=[""]).prompt == TextPrompt(("",))


@looped("prompt", [[1, "a"], [True, False], [1.5], [-1]])
def test_19_lists_of_other_things_are_no_prompt(prompt: JsonValue) -> None:
    assert refuse(prompt=prompt).param == "prompt"


def test_20_a_list_of_integers_is_one_prompt() -> None:
    request = complete(prompt=[1, 2, 3])
    assert (request.prompt, request.choices) == (TokenPrompt(((1, 2, 3),)), 1)


@every_row
def test_22_a_missing_prompt_is_refused(row: CompletionSurface) -> None:
    # OpenAI's own default, the end-of-text token, means something else to every other model.
    for body in (b'{"model":"m"}', b'{"model":"m","prompt":null}'):
        facts = refuse_bytes(body, row)
        assert facts.param == "prompt"
        assert row.error(facts)[0] == row.validation_status


def test_23_both_stop_fields_are_one_list() -> None:
    assert complete(stop="\n", stop_sequences=["\n", "END"]).params["stop"] == ("\n", "END")


@every_row
def test_24_five_stops_are_taken_and_thirty_three_are_too_many(row: CompletionSurface) -> None:
    # Beyond 4 the page has an error everywhere but on Private AI Services; clients such as Continue send 10, and what a
    # vendor does not take the gateway can find.
    assert len(complete(row, stop=list("abcde")).params["stop"]) == 5
    assert refuse(row, stop=[str(number) for number in range(33)]).param == "stop"


@pytest.mark.parametrize(("stop", "param"), [("", "stop"), (["a", ""], "stop.1")])
def test_25_an_empty_stop_is_refused(stop: JsonValue, param: str) -> None:
    assert refuse(stop=stop).param == param


@every_row
def test_26_no_stops_are_absent_but_on_pais_refused(row: CompletionSurface) -> None:
    if row is PAIS:
        assert row.error(refuse(row, stop=[]))[0] == 422
    else:
        assert "stop" not in complete(row, stop=[]).params
    assert complete(row, stop="x").params["stop"] == ("x",)


def test_30_true_asks_for_the_merged_log_probabilities_on_openais_path() -> None:
    request = complete(logprobs=True)
    hi = ContentLogprobs((TokenLogprob("Hi", -0.5, (72, 105)),))
    body = orjson.loads(
        OPENAI.renderer(request, FACTS).completion(Completion((Choice(0, "Hi", "stop", logprobs=hi),), USAGE))
    )
    (choice,) = choices(body)
    assert isinstance(choice["logprobs"], dict)
    assert choice["logprobs"].keys() == {
        *("content", "refusal", "tokens", "token_logprobs", "top_logprobs", "text_offset"),
    }


def test_31_a_count_of_nothing_still_asks_for_the_sampled_token() -> None:
    assert complete(logprobs=0).params["logprobs"] == LogprobsWanted(0, "legacy")
    assert "logprobs" not in complete().params


@every_row
def test_32_a_count_of_six_is_refused_not_clamped(row: CompletionSurface) -> None:
    assert refuse(row, logprobs=6).param == "logprobs"


def test_33_alternatives_without_log_probabilities_are_refused() -> None:
    assert refuse(logprobs=False, top_logprobs=3).param == "top_logprobs"


def test_34_and_35_equal_tokens_keep_the_likelier_and_infinity_has_a_floor() -> None:
    sampled = TokenLogprob(
        "a", -1.0, None, (TokenLogprob("a", -4.0), TokenLogprob("b", float("-inf")), TokenLogprob("a", -1.0))
    )
    choice = Choice(0, "a", "stop", logprobs=ContentLogprobs((sampled,)))
    body = orjson.loads(OPENAI.renderer(complete(logprobs=3), FACTS).completion(Completion((choice,), USAGE)))
    assert choices(body)[0]["logprobs"] == {
        "tokens": ["a"],
        "token_logprobs": [-1.0],
        "top_logprobs": [{"a": -1.0, "b": -9999.0}],
        "text_offset": [1],
    }


def test_36_a_character_split_over_tokens_counts_where_it_began() -> None:
    renderer = OPENAI.renderer(complete(prompt="Say hi", logprobs=0, stream=True), FACTS)
    pieces = ((" \\xf0\\x9f\\x91", b" \xf0\x9f\x91", ""), ("\\x8b", b"\x8b", " 👋"), ("!", b"!", "!"))
    stream = b"".join(
        renderer.chunk(Chunk(text=text, logprobs=ContentLogprobs((TokenLogprob(token, -0.1, tuple(data)),))))
        for token, data, text in pieces
    )
    shown = choices(*objects(stream))
    assert "".join(str(choice["text"]) for choice in shown) == " 👋!"
    offsets = [choice["logprobs"]["text_offset"] for choice in shown if isinstance(choice["logprobs"], dict)]
    assert offsets == [[6], [7], [8]]


@every_row
@looped("stream", [None, False])
def test_37_stream_options_without_a_stream_are_refused(row: CompletionSurface, stream: JsonValue) -> None:
    assert refuse(row, stream=stream, stream_options={}).param == "stream_options"


def test_38_usage_asked_for_comes_once_after_every_choice() -> None:
    request = complete(prompt=["a", "b", "c"], n=2, stream=True, stream_options=USAGE_ASKED)
    frames = objects(play(OPENAI.renderer(request, FACTS), *(Chunk(i, "x", "stop") for i in range(6)), USAGE))
    assert [bool(frame["usage"]) for frame in frames] == [False] * 6 + [True]


def test_40_fireworks_reports_usage_on_the_last_finish_unasked() -> None:
    stream = play(
        FIREWORKS.renderer(complete(FIREWORKS, stream=True), FACTS), Chunk(text="x", finish_reason="stop"), USAGE
    )
    (frame,) = objects(stream)
    assert frame["usage"]
    assert choices(frame)[0]["finish_reason"] == "stop"


@pytest.mark.parametrize("name", ["scale_v4", "scale_v5"])
def test_41_scale_reports_usage_at_the_last_finish_and_just_ends(name: str) -> None:
    row = ROWS[name]
    request = complete(row, stream=True, stream_options=USAGE_ASKED)
    stream = play(row.renderer(request, FACTS), Chunk(text="x"), Chunk(finish_reason="stop"), USAGE)
    assert b"[DONE]" not in stream
    assert [bool(frame.get("usage")) for frame in objects(stream)] == [False, True]


@looped("stream", ["true", 1, 0, "yes", []])
def test_42_stream_is_exactly_true_or_false(stream: JsonValue) -> None:
    assert refuse(stream=stream).param == "stream"


@every_row
@looped(
    "model",
    [
        *("fireworks/accounts/fireworks/models/llama-v3", "accounts/acme/models/x#accounts/acme/deployments/y"),
        *("meta-llama/Llama-3-8b", "openai/gpt-x/my-deployment", "Some Model/"),
    ],
)
def test_43_to_47_a_models_name_is_passed_on_whole(row: CompletionSurface, model: str) -> None:
    assert complete(row, model=model).model == model


@looped("model", [" m", "m ", "m\n", "\tm", " "])
def test_47_space_around_a_models_name_is_refused(model: str) -> None:
    assert refuse(model=model).param == "model"


def test_48_the_doubled_version_is_an_alias() -> None:
    actions = {endpoint.path: endpoint.action for endpoint in FIREWORKS.endpoints}
    assert actions["/inference/v1/v1/completions"] == actions["/inference/v1/completions"] == Operation.COMPLETIONS


def test_49_of_two_keys_the_surfaces_own_comes_first() -> None:
    first = {name: row.key_headers[0] for name, row in ROWS.items()}
    assert first == {
        "openai": "authorization",
        "scale_v4": "x-api-key",
        "scale_v5": "x-api-key",
        "fireworks": "authorization",
        "pais": "authorization",
    }


@every_row
def test_50_pais_alone_fills_in_a_temperature(row: CompletionSurface) -> None:
    request = complete(row)
    assert ("temperature" in request.injected) is (row is PAIS)
    assert request.params.get("temperature") == (0 if row is PAIS else None)


def test_51_top_k_switched_off_is_understood_but_on_pais_refused() -> None:
    assert complete(top_k=-1).params["top_k"] == -1
    assert refuse(PAIS, top_k=-1).param == "top_k"


def test_54_without_a_fingerprint_none_is_shown() -> None:
    body = orjson.loads(OPENAI.renderer(complete(), FACTS).completion(Completion((Choice(0, "", "stop"),), USAGE)))
    assert "system_fingerprint" not in body


def test_55_choices_may_begin_alike() -> None:
    assert complete(guided_choice=["a", "ab"]).params["guided"] == Guided("choice", ("a", "ab"))


def test_56_a_schema_may_be_a_json_string() -> None:
    assert complete(guided_json='{"type":"object"}').params["guided"] == Guided("json", {"type": "object"})
    assert refuse(guided_json="[]").param == "guided_json"


def test_57_guided_text_may_be_called_text() -> None:
    assert complete(guided_json={}, response_format={"type": "text"}).params["guided"] == Guided("json", {})


def test_59_tools_on_a_text_path_show_as_an_extra() -> None:
    request = complete(tools=[{"type": "function", "function": {"name": "f"}}])
    called = Choice(0, "", "tool_calls", tool_calls=(ToolCall("c", "f", "{}"),))
    body = orjson.loads(OPENAI.renderer(request, FACTS).completion(Completion((called,), USAGE)))
    (choice,) = choices(body)
    assert (choice["finish_reason"], choice["native_finish_reason"]) == ("stop", "tool_calls")
    assert choice["tool_calls"]


def test_60_images_and_markers_must_match_and_a_marker_alone_is_text() -> None:
    assert params_at_fault(refuse(prompt="one <image>", images=[URI, URI])) == ["images"]
    assert complete(prompt="literal <image>").prompt == TextPrompt(("literal <image>",))


def test_61_two_prompts_need_two_lists_of_images() -> None:
    assert params_at_fault(refuse(prompt=["<image>", "<image>"], images=[URI, URI])) == ["images"]
    request = complete(prompt=["<image>", "<image>"], images=[[URI], [URI]])
    assert request.params["images"] == ((URI,), (URI,))


@every_row
def test_65_the_overflow_rule_is_always_explicit(row: CompletionSurface) -> None:
    assert complete(row).params["context_length_exceeded_behavior"] == ("truncate" if row is FIREWORKS else "error")
    explicit = complete(row, context_length_exceeded_behavior="error")
    assert "context_length_exceeded_behavior" not in explicit.injected


def test_70_protected_params_are_refused() -> None:
    assert refuse(inference_extra_params={"stream": True}).param == "inference_extra_params.stream"


def test_71_protected_headers_are_refused() -> None:
    assert refuse(inference_extra_headers={"Authorization": "x"}).param == "inference_extra_headers.Authorization"


@looped("timeout", ["2m", 0, -1, "abc"])
def test_72_a_timeout_is_positive_seconds(timeout: JsonValue) -> None:
    assert refuse(inference_timeout=timeout).param == "inference_timeout"


@every_row
def test_73_line_separators_are_escaped(row: CompletionSurface) -> None:
    frame = row.renderer(complete(row, stream=True), FACTS).chunk(Chunk(text="a\u2028b\x85c"))
    assert b"a\\u2028b\\u0085c" in frame


def test_74_trailing_data_and_repeated_fields_are_refused_and_a_mark_is_tolerated() -> None:
    good = b'{"model":"m","prompt":"p"}'
    assert OPENAI.parse(Operation.COMPLETIONS, b"\xef\xbb\xbf" + good, None).model == "m"
    assert refuse_bytes(good + b"x").param is None
    # The page lets the last of repeated keys win; who sends two would see one ignored without a word.
    assert refuse_bytes(b'{"model":"m","prompt":"p","model":"m2"}').param == "model"


def test_75_a_seed_beyond_64_bits_is_refused() -> None:
    assert refuse_bytes(b'{"model":"m","prompt":"p","seed":18446744073709551616}').param == "seed"
    assert refuse_bytes(b'{"model":"m","prompt":"p","seed":9223372036854775808}').param == "seed"
    assert complete(seed=2**63 - 1).params["seed"] == 2**63 - 1
