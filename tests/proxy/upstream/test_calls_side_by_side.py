"""Requests of several calls, in virtual time: how the calls run concurrently, and how their responses are merged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import StreamOptions, TextPrompt
from proxy.deadlines import DeadlinePassed, Phase
from proxy.errors import GatewayError
from proxy.upstream.call_vendor import MAX_CONCURRENT_CALLS
from proxy.upstream.vendor_stream import DRAIN_WAIT, TAIL_WAIT
from tests.proxy.kit.mark_streams import CUT, Body, Step, often
from tests.proxy.kit.scripted_calls import Exchange, Vendor, ask, refusal, target, whole
from tests.support.examples import examples
from tests.support.http_scripts import DONE, data_frames
from tests.support.looped import looped
from tests.support.openai_wire import completion, completion_frames

SIXTEEN = tuple(f"<{number}>" for number in range(16))
"""As many stops as this vendor accepts."""
WINDOW = "context_length_exceeded_behavior"


def named(body: JsonObject) -> str:
    return f"{body['prompt']}{body.get('seed', '')}"


def counted_completion(text: str, prompt: int, generated: int, fingerprint: str = "fp") -> JsonObject:
    """Return a non-streaming response with that usage."""
    usage: JsonObject = {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}
    return {**completion(text), "usage": usage, "system_fingerprint": fingerprint}


# Non-streaming responses ----------------------------------------------------------------------------------------------


def test_the_worked_example_of_two_prompts_with_two_candidates() -> None:
    usages = {"A1": (3, 5), "A2": (3, 4), "B1": (2, 7), "B2": (2, 1)}
    vendor = Vendor(lambda body: whole(counted_completion(named(body), *usages[named(body)]), 3.0))
    exchange = Exchange(vendor)
    answer = exchange.whole(ask(TextPrompt(("A", "B")), {"n": 2, "seed": 1}))
    assert [(choice.index, choice.text) for choice in answer.choices] == [(0, "A1"), (1, "A2"), (2, "B1"), (3, "B2")]
    assert answer.usage == Usage(5, 17)
    assert exchange.record.billed == Usage(10, 17)
    assert exchange.time == 3.0
    assert exchange.record.waited == 3.0


def test_the_order_of_choices_is_not_that_of_the_answers() -> None:
    vendor = Vendor(lambda body: whole(completion(named(body)), 9.0 - int(str(body["prompt"]))))
    answer = Exchange(vendor).whole(ask(TextPrompt(tuple("012345678"))))
    assert [choice.text for choice in answer.choices] == [*"012345678"]


@pytest.mark.parametrize(("second", "expected"), [("fp", "fp"), ("other", None)])
def test_a_fingerprint_is_told_where_all_agree(second: str, expected: str | None) -> None:
    vendor = Vendor(lambda body: whole(counted_completion("x", 1, 1, "fp" if body["prompt"] == "A" else second)))
    assert Exchange(vendor).whole(ask(TextPrompt(("A", "B")))).system_fingerprint == expected


def test_calls_of_one_request_are_under_way_together_but_not_without_limit() -> None:
    vendor = Vendor(lambda body: whole(completion("x"), 1.0))
    exchange = Exchange(vendor)
    assert len(exchange.whole(ask("hi", {"n": 2 * MAX_CONCURRENT_CALLS + 1})).choices) == 2 * MAX_CONCURRENT_CALLS + 1
    assert (vendor.most, exchange.time) == (MAX_CONCURRENT_CALLS, 3.0)


@looped("stream", [False, True])
@looped(
    ("failing", "kind"),
    [
        (lambda: refusal(500, "no", 1.0), FailureKind.SERVER),
        (lambda: refusal(429, "no", 1.0), FailureKind.RATE_LIMITED),
        (lambda: Body(1.0, CUT), FailureKind.TRUNCATED),
        (lambda: Body(1.0, b"nonsense", b""), None),
    ],
    ids=["500", "429", "cut", "nonsense"],
)
def test_a_call_that_fails_fails_all(stream: bool, failing: Callable[[], Body], kind: FailureKind | None) -> None:
    vendor = Vendor(lambda body: failing() if body["prompt"] == "B" else whole(completion("x"), 60.0))
    exchange = Exchange(vendor)
    failure = exchange.fails(ask(TextPrompt(("A", "B", "C")), stream=stream))
    assert kind is None or failure.kind is kind
    assert exchange.time == 1.0
    assert exchange.record.billed is None


def test_a_call_that_answers_with_other_choices_than_asked_is_malformed() -> None:
    vendor = Vendor(lambda body: whole({**completion("x"), "choices": []}))
    assert Exchange(vendor).fails(ask("hi", {"n": 2})).kind is FailureKind.MALFORMED
    two: JsonObject = {"index": 1, "text": "x", "finish_reason": "stop"}
    vendor = Vendor(lambda body: whole({**completion("x"), "choices": [two]}))
    assert Exchange(vendor).fails(ask("hi", {"n": 2})).kind is FailureKind.MALFORMED


@pytest.mark.parametrize("stream", [False, True])
def test_the_total_ends_every_call(stream: bool) -> None:
    vendor = Vendor(lambda body: Body())
    exchange = Exchange(vendor, total=30.0)
    with pytest.raises(DeadlinePassed) as caught:
        (exchange.streamed if stream else exchange.whole)(ask("hi", {"n": 3}, stream=stream))
    assert (caught.value.phase, exchange.time) == (Phase.TOTAL, 30.0)
    assert [body.closed + body.released for body in vendor.given] == [1, 1, 1]


def test_a_call_may_be_silent_while_another_is_read() -> None:
    slow: Mapping[str, Sequence[Step]] = {"A": often(50, b" ", 4.0), "B": [b" ", 119.0, b" ", 119.0]}
    exchange = Exchange(Vendor(lambda body: whole(completion("x"), *slow[str(body["prompt"])])))
    assert len(exchange.whole(ask(TextPrompt(("A", "B")))).choices) == 2
    assert exchange.time == 238.0


@looped(
    ("steps", "answer", "phase", "time"),
    [
        ((b" ", 121.0), None, Phase.IDLE, 120.0),
        ((3.1,), 3.0, Phase.ANSWER, 3.0),
        (often(9, 1.0, b" "), 3.0, Phase.ANSWER, 3.0),
    ],
)
def test_one_call_of_several_that_is_silent_too_long_ends_them_all(
    steps: Sequence[Step], answer: float | None, phase: Phase, time: float
) -> None:
    slow: Mapping[str, Sequence[Step]] = {"A": (), "B": steps}
    exchange = Exchange(Vendor(lambda body: whole(completion("x"), *slow[str(body["prompt"])])), answer=answer)
    with pytest.raises(DeadlinePassed) as caught:
        exchange.whole(ask(TextPrompt(("A", "B", "A"))))
    assert (caught.value.phase, exchange.time) == (phase, time)


def test_each_call_of_several_has_the_time_of_an_answer() -> None:
    prompts = TextPrompt(tuple(map(str, range(3 * MAX_CONCURRENT_CALLS))))
    exchange = Exchange(Vendor(lambda body: whole(completion("x"), 2.9)), answer=3.0)
    assert len(exchange.whole(ask(prompts)).choices) == 3 * MAX_CONCURRENT_CALLS
    assert exchange.time == pytest.approx(3 * 2.9)


# Candidates ----------------------------------------------------------------------------------------------------------


def test_the_likeliest_candidate_is_the_answer_and_all_are_counted() -> None:
    means = {"Q1": [-0.1, -0.2, -3.0], "Q2": [-0.9, -0.9], "Q3": [-1.0] * 10}

    def scored(body: JsonObject) -> Body:
        logprobs = means[named(body)]
        answer = counted_completion(named(body), 4, len(logprobs))
        tokens: list[JsonValue] = [{"token": "t", "logprob": value, "bytes": [116]} for value in logprobs]
        choice: JsonObject = {"index": 0, "text": named(body), "finish_reason": "stop", "logprobs": {"content": tokens}}
        answer["choices"] = [choice]
        return whole(answer)

    exchange = Exchange(Vendor(scored))
    answer = exchange.whole(ask("Q", {"best_of": 3, "seed": 1}))
    assert [(choice.index, choice.text, choice.logprobs) for choice in answer.choices] == [(0, "Q2", None)]
    assert answer.usage == Usage(4, 15)
    assert exchange.record.billed == Usage(12, 15)


# Stops that the gateway finds ----------------------------------------------------------------------------------------

SEARCHED: Mapping[str, object] = {"stop": (*SIXTEEN, "END")}


def stopped(*steps: Step) -> tuple[Exchange, list[tuple[str, str]], Usage | None]:
    exchange = Exchange(Vendor(lambda body: Body(*steps)))
    answer = exchange.whole(ask("hi", SEARCHED))
    return exchange, [(choice.text, choice.finish_reason) for choice in answer.choices], answer.usage


def test_at_a_stop_the_vendor_is_left_and_the_usage_is_a_guess() -> None:
    frames = completion_frames(["one E", "ND two", "three"])
    exchange, choices, usage = stopped(*frames[:2], 60.0, *frames[2:])
    assert choices == [("one ", "stop")]
    assert usage == Usage(1, 1, estimated=True)
    assert exchange.time == 0.0
    assert exchange.vendor.given[0].closed > 0
    (body,) = exchange.vendor.generated
    assert (body["stream"], len(body["stop"] if isinstance(body["stop"], list) else ())) == (True, 16)


def test_without_a_stop_the_answer_and_its_usage_are_the_vendor_s() -> None:
    exchange, choices, usage = stopped(*completion_frames(["one", "two"]), b"")
    assert choices == [("onetwo", "stop")]
    assert usage == Usage(6, 2)
    assert exchange.vendor.given[0].released == 1


@looped(
    ("steps", "time"),
    [((), TAIL_WAIT + DRAIN_WAIT), ((b"",), 0.0), ((CUT,), DRAIN_WAIT), ((b": ping\n\n", CUT), DRAIN_WAIT)],
)
def test_a_searched_answer_that_has_finished_is_whole_however_it_ends(steps: Sequence[Step], time: float) -> None:
    exchange, choices, usage = stopped(*completion_frames(["one"])[:-1], *steps)
    assert (choices, usage) == ([("one", "stop")], Usage(6, 2))
    assert exchange.time == time


@looped("steps", [(b"",), (CUT,), (DONE,)])
def test_a_searched_answer_that_never_finished_is_none(steps: Sequence[Step]) -> None:
    exchange = Exchange(Vendor(lambda body: Body(completion_frames(["one"])[0], *steps)))
    assert exchange.fails(ask("hi", SEARCHED)).kind is FailureKind.TRUNCATED


def test_a_searched_answer_with_a_choice_that_was_not_asked_for_is_none() -> None:
    frame: JsonObject = {"choices": [{"index": 1, "text": "x", "finish_reason": "stop"}]}
    exchange = Exchange(Vendor(lambda body: Body(*data_frames(frame), DONE, b"")))
    assert "a choice that was not requested" in exchange.fails(ask("hi", SEARCHED)).message


def test_the_guess_counts_candidates_that_were_not_chosen() -> None:
    def scored(body: JsonObject) -> Body:
        logprobs: JsonObject = {"content": [{"token": "t", "logprob": -1.0, "bytes": [116]}]}
        choice: JsonObject = {"index": 0, "text": "fourfourEND", "finish_reason": None, "logprobs": logprobs}
        return Body(*data_frames({"choices": [choice]}))

    answer = Exchange(Vendor(scored)).whole(ask("four", {**SEARCHED, "best_of": 3}))
    assert [choice.text for choice in answer.choices] == ["fourfour"]
    assert answer.usage == Usage(1, 6, estimated=True)


def test_candidates_are_searched_each_for_itself() -> None:
    texts = {1: ["aEND", "x"], 2: ["b"], 3: ["cE", "N", "D"]}
    vendor = Vendor(lambda body: Body(*completion_frames(texts[int(str(body["seed"]))]), b""))
    answer = Exchange(vendor).whole(ask("hi", {**SEARCHED, "n": 3, "seed": 1}))
    assert [choice.text for choice in answer.choices] == ["a", "b", "c"]
    assert answer.usage is not None
    assert answer.usage.estimated


# No call at all ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [None, "error"])
def test_prompts_that_are_only_to_be_repeated_are_not_sent(window: str | None) -> None:
    params: dict[str, object] = {"echo": True, "max_tokens": 0, "n": 2} | ({WINDOW: window} if window else {})
    prompt = TextPrompt(("one", "two"))
    exchange = Exchange(Vendor(lambda body: Body()))
    answer = exchange.whole(ask(prompt, params))
    assert [(choice.text, choice.finish_reason) for choice in answer.choices] == [
        ("one", "length"),
        ("one", "length"),
        ("two", "length"),
        ("two", "length"),
    ]
    assert answer.usage == Usage(2, 0, estimated=True)
    assert exchange.vendor.seen == []
    frames = Exchange(Vendor(lambda body: Body())).streamed(ask(prompt, params, stream=True))
    assert texts_of(frames) == {0: "one", 1: "one", 2: "two", 3: "two"}
    assert frames.endswith(DONE)


# The window ----------------------------------------------------------------------------------------------------------


def counting(path: str, body: JsonObject) -> Body:
    """Respond as a tokenizer that counts letters, with a window of 100 tokens."""
    if path == "/tokenize":
        return whole({"tokens": [0] * len(str(body["content"]))})
    return whole({"default_generation_settings": {"n_ctx": 100}})


@pytest.mark.parametrize("stream", [False, True])
def test_every_prompt_is_counted_before_the_first_call_is_made(stream: bool) -> None:
    vendor = Vendor(lambda body: whole(completion("x")), counting)
    prompts = TextPrompt(("a" * 10, "b" * 95, "c"))
    failure = Exchange(vendor).fails(ask(prompts, {"max_tokens": 10, WINDOW: "error"}, stream=stream))
    assert failure.kind is FailureKind.CONTEXT_LENGTH
    assert "105 tokens (95 in the prompt, 10 in the completion)" in failure.message
    assert vendor.generated == []


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_client_wants_of_a_window_that_nobody_knows_is_refused_before_any_call(stream: bool) -> None:
    exchange = Exchange(Vendor(lambda body: Body()))
    with pytest.raises(GatewayError) as caught:
        (exchange.streamed if stream else exchange.whole)(ask("hi", {"n": 2, WINDOW: "error"}, stream=stream))
    assert caught.value.facts.param == WINDOW
    assert exchange.vendor.generated == []


def test_each_prompt_gets_the_limit_that_its_own_length_leaves() -> None:
    compatible = target("openai_compatible")
    words = (
        "This model's maximum context length is 100 tokens. However, you requested {} tokens "
        "({} in the messages, {} in the completion)."
    )

    def answer(body: JsonObject) -> Body:
        prompt, limit = len(str(body["prompt"])), int(str(body["max_tokens"]))
        if prompt + limit > 100:
            return refusal(400, words.format(prompt + limit, prompt, limit))
        return whole(completion("x"))

    exchange = Exchange(Vendor(answer), compatible)
    exchange.whole(ask(TextPrompt(("a" * 10, "b" * 70, "c" * 40)), {"max_tokens": 50, WINDOW: "truncate"}))
    limits = sorted((str(body["prompt"])[0], body["max_tokens"]) for body in exchange.vendor.generated)
    assert limits == [("a", 50), ("b", 30), ("b", 50), ("c", 50)]
    assert exchange.record.max_tokens == 30


# Streams -------------------------------------------------------------------------------------------------------------


def texts_of(frames: bytes) -> dict[int, str]:
    texts: dict[int, str] = {}
    ends: list[int] = []
    for data in frames.split(b"\n\n"):
        if data and data != DONE.strip():
            for choice in orjson.loads(data.removeprefix(b"data: "))["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
                ends += [choice["index"]] if choice["finish_reason"] else []
    assert sorted(ends) == sorted(texts)
    return texts


def test_a_stream_of_several_calls_is_one_stream_with_one_usage_and_one_end() -> None:
    vendor = Vendor(lambda body: Body(*completion_frames([named(body), "!"]), b""))
    exchange = Exchange(vendor)
    request = replace(ask(TextPrompt(("A", "B")), {"n": 2, "seed": 1}, stream=True), stream_options=StreamOptions(True))
    frames = exchange.streamed(request)
    assert texts_of(frames) == {0: "A1!", 1: "A2!", 2: "B1!", 3: "B2!"}
    assert frames.count(b'"usage":{') == 1
    assert frames.count(b"data: [DONE]") == 1
    assert exchange.record.usage == Usage(12, 8)
    assert exchange.record.billed == Usage(24, 8)
    assert exchange.record.outcome == "ok"


def test_a_stream_is_not_silent_while_any_of_its_calls_talks() -> None:
    frames = completion_frames(["x"])
    talks = often(10, 50.0, data_frames({"choices": [{"index": 0, "text": "y", "finish_reason": None}]})[0])
    bodies = {"A": Body(*talks, *frames, b""), "B": Body(400.0, *frames, b"")}
    exchange = Exchange(Vendor(lambda body: bodies[str(body["prompt"])]))
    assert texts_of(exchange.streamed(ask(TextPrompt(("A", "B")), stream=True))) == {0: "y" * 10 + "x", 1: "x"}


def test_a_stream_whose_last_call_falls_silent_passes_the_idle_limit() -> None:
    frames = completion_frames(["x"])
    bodies = {"A": Body(*frames, b""), "B": Body(*frames[:1])}
    exchange = Exchange(Vendor(lambda body: bodies[str(body["prompt"])]))
    with pytest.raises(DeadlinePassed) as caught:
        exchange.streamed(ask(TextPrompt(("A", "B")), stream=True))
    assert caught.value.phase is Phase.IDLE


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[Step]:
    """Generate a stream of this text, cut into frames and into chunks anywhere, with pauses anywhere."""
    places = draw(st.lists(st.integers(0, len(text)), max_size=4).map(sorted))
    edges = [0, *places, len(text)]
    stream = b"".join(completion_frames([text[start:end] for start, end in pairwise(edges)]))
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    bounds = [0, *cuts, len(stream)]
    steps: list[Step] = []
    for start, end in pairwise(bounds):
        steps += [draw(st.integers(0, 5)) / 4, stream[start:end]] if start < end else []
    return [*steps, b""]


@examples(60)
@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.booleans())
def test_a_stream_says_what_the_whole_answer_says_however_it_is_cut_and_mixed(
    data: st.DataObject, prompts: int, n: int, echo: bool, searched: bool
) -> None:
    prompt = TextPrompt(tuple("ABC"[:prompts]))
    names = [f"{name}{seed}" for name in prompt.texts for seed in range(1, n + 1)]
    texts = {name: data.draw(st.text("éEND \u2028", max_size=12), label=name) for name in names}
    streams = {name: data.draw(pieces(text)) for name, text in texts.items()}
    params: dict[str, object] = {"n": n, "seed": 1, "echo": echo}
    if searched:
        params |= SEARCHED

    def answer(body: JsonObject) -> Body:
        name = named(body)
        return Body(*streams[name]) if body.get("stream") else whole(completion(texts[name]))

    said = Exchange(Vendor(answer)).whole(ask(prompt, params))
    frames = Exchange(Vendor(answer)).streamed(ask(prompt, params, stream=True))
    assert texts_of(frames) == {choice.index: choice.text for choice in said.choices}
    for choice in said.choices:
        name = names[choice.index]
        text = texts[name].partition("END")[0] if searched else texts[name]
        assert choice.text == (name[0] if echo else "") + text
