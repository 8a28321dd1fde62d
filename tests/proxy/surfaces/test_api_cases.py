"""The cases of the four APIs that a surface decides. A test's name has the numbers of its cases, from 1 to 76."""

import orjson

from providers.completion import Choice, Chunk, Completion, ContentLogprobs, TokenLogprob
from providers.json_types import JsonValue
from providers.unified_request import Guided, LogprobsWanted, Operation, TokenPrompt
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


BECOMES: dict[str, tuple[dict[str, JsonValue], str, object]] = {
    "11 one limit by two names": ({"max_tokens": 50, "max_new_tokens": 50}, "max_tokens", 50),
    "12 a null limit": ({"max_tokens": None, "max_new_tokens": 20}, "max_tokens", 20),
    "14 the best of nothing": ({"best_of": 0}, "best_of", None),
    "15 a stream of one": ({"best_of": 1, "stream": True}, "best_of", None),
    "15 a stream without a choice": ({"best_of": 3, "n": 3, "stream": True}, "best_of", None),
    "23 both stop fields": ({"stop": "\n", "stop_sequences": ["\n", "END"]}, "stop", ("\n", "END")),
    "31 a count of nothing": ({"logprobs": 0}, "logprobs", LogprobsWanted(0, "legacy")),
    "31 no count": ({}, "logprobs", None),
    "51 a top k that is off": ({"top_k": -1}, "top_k", -1),
    "55 choices that begin alike": ({"guided_choice": ["a", "ab"]}, "guided", Guided("choice", ("a", "ab"))),
    "56 a schema as a string": ({"guided_json": '{"type":"object"}'}, "guided", Guided("json", {"type": "object"})),
    "57 text": ({"guided_json": {}, "response_format": {"type": "text"}}, "guided", Guided("json", {})),
    "60 a marker alone": ({"prompt": "literal <image>"}, "images", None),
    "61 two lists": ({"prompt": ["<image>"] * 2, "images": [[URI], [URI]]}, "images", ((URI,), (URI,))),
    "75 the largest seed": ({"seed": 2**63 - 1}, "seed", 2**63 - 1),
}


@looped(("fields", "name", "value"), BECOMES.values(), ids=BECOMES.keys())
def test_what_is_asked_for_becomes_one_field(fields: dict[str, JsonValue], name: str, value: object) -> None:
    assert complete(**fields).params.get(name) == value


REFUSED: dict[str, tuple[dict[str, JsonValue], str]] = {
    "11 different limits": ({"max_tokens": 50, "max_new_tokens": 60}, "max_new_tokens"),
    "13 more candidates than best of": ({"best_of": 2, "n": 3}, "best_of"),
    "15 a stream of the best": ({"best_of": 5, "stream": True}, "best_of"),
    "18 no prompt": ({"prompt": []}, "prompt"),
    "18 an empty list of tokens": ({"prompt": [[]]}, "prompt.0"),
    "19 a list of both": ({"prompt": [1, "a"]}, "prompt"),
    "19 truths": ({"prompt": [True, False]}, "prompt"),
    "19 a fraction": ({"prompt": [1.5]}, "prompt"),
    "19 a negative id": ({"prompt": [-1]}, "prompt"),
    "25 an empty stop": ({"stop": ""}, "stop"),
    "25 an empty stop among others": ({"stop": ["a", ""]}, "stop.1"),
    "32 a count of six": ({"logprobs": 6}, "logprobs"),
    "33 alternatives alone": ({"logprobs": False, "top_logprobs": 3}, "top_logprobs"),
    "37 options": ({"stream_options": {}}, "stream_options"),
    "37 options of no stream": ({"stream": False, "stream_options": {}}, "stream_options"),
    **{f"42 {stream!r}": ({"stream": stream}, "stream") for stream in ("true", "yes", 1, 0)},
    "42 a list": ({"stream": []}, "stream"),
    "56 a schema that is a list": ({"guided_json": "[]"}, "guided_json"),
    "60 one marker": ({"prompt": "one <image>", "images": [URI, URI]}, "images"),
    "61 one list": ({"prompt": ["<image>"] * 2, "images": [URI, URI]}, "images"),
    "75 a seed beyond 64 bits": ({"seed": 2**63}, "seed"),
}


@every_row
@looped(("fields", "param"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_senseless_is_refused_by_name(row: CompletionSurface, fields: dict[str, JsonValue], param: str) -> None:
    assert params_at_fault(refuse(row, **fields)) == [param]


def test_20_a_list_of_integers_is_one_prompt() -> None:
    request = complete(prompt=[1, 2, 3])
    assert (request.prompt, request.choices) == (TokenPrompt(((1, 2, 3),)), 1)


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


@every_row
@looped("given", [{}, {"max_tokens": None}])
def test_10_sixteen_tokens_are_openais_default_alone(row: CompletionSurface, given: dict[str, JsonValue]) -> None:
    assert complete(row, **given).params.get("max_tokens") == (16 if row is OPENAI else None)


@every_row
def test_22_a_missing_prompt_is_refused(row: CompletionSurface) -> None:
    # OpenAI's own default, the end-of-text token, means something else to every other model.
    for body in (b'{"model":"m"}', b'{"model":"m","prompt":null}'):
        facts = refuse_bytes(body, row)
        assert facts.param == "prompt"
        assert row.error(facts)[0] == row.validation_status


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


def test_74_trailing_data_and_repeated_fields_are_refused_and_a_mark_is_tolerated() -> None:
    good = b'{"model":"m","prompt":"p"}'
    assert OPENAI.parse(Operation.COMPLETIONS, b"\xef\xbb\xbf" + good, None).model == "m"
    assert refuse_bytes(good + b"x").param is None
    # The page lets the last of repeated keys win; a client that sends two would have one ignored without an error.
    assert refuse_bytes(b'{"model":"m","prompt":"p","model":"m2"}').param == "model"
