"""The mock vendor as a client sees it: a request body in, timed response bytes out."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject, JsonValue
from providers.mock.server import SimulatedResponse, is_harmless, respond
from tests.support.looped import looped

PATHS = ("/completions", "/chat/completions")
STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


def ask(model: str, path: str = "/completions", **more: JsonValue) -> SimulatedResponse:
    question: JsonValue = "one two three" if path == "/completions" else [{"role": "user", "content": "one two three"}]
    body = {"model": model, "prompt" if path == "/completions" else "messages": question, **more}
    made = respond(path, orjson.dumps(body))
    return replace(made, chunks=[*made.chunks])


def body_of(made: SimulatedResponse) -> bytes:
    return b"".join([chunk.data for chunk in made.chunks])


def json_of(made: SimulatedResponse) -> JsonObject:
    body: JsonObject = orjson.loads(body_of(made))
    return body


def text_of(made: SimulatedResponse) -> str:
    body = body_of(made)
    if made.headers["content-type"] == "application/json":
        choice = orjson.loads(body)["choices"][0]
        return str(choice["text"] if "text" in choice else choice["message"]["content"])
    text = ""
    for line in body.split(b"\n\n"):
        if line and line != b"data: [DONE]":
            for choice in orjson.loads(line[6:]).get("choices", []):
                text += choice["text"] if "text" in choice else choice["delta"].get("content", "")
    return text


@looped("path", PATHS)
@looped("model", ["echo", "anything", "long-40", "empty", "typed"])
def test_the_streamed_text_is_the_whole_text(path: str, model: str) -> None:
    assert text_of(ask(model, path, stream=True)) == text_of(ask(model, path))


@pytest.mark.parametrize("path", PATHS)
def test_echo_answers_with_the_prompts_own_text(path: str) -> None:
    assert text_of(ask("echo", path)) == "one two three"


@pytest.mark.parametrize("path", PATHS)
def test_any_other_name_answers_with_prose_that_never_changes(path: str) -> None:
    assert text_of(ask("gpt-something", path)) == text_of(ask("another", path))
    assert len(text_of(ask("gpt-something", path)).split()) > 10


def test_a_good_answer_is_json_or_an_event_stream_that_is_done() -> None:
    assert ask("m").headers["content-type"] == "application/json"
    streamed = ask("m", stream=True)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert (streamed.status, streamed.end) == (200, "eof")
    assert [*streamed.chunks][-1].data == b"data: [DONE]\n\n"


@looped("status", STATUSES)
def test_an_error_name_gives_that_error(status: int) -> None:
    made = ask(f"error-{status}", stream=True)
    assert made.status == status
    assert made.headers["content-type"] == "application/json"
    assert set(json_of(made)) == {"error"}
    assert ("retry-after" in made.headers) == (status in (429, 503))


def test_an_error_name_with_another_number_is_only_a_name() -> None:
    assert ask("error-418").status == 200


def test_the_overflow_is_a_context_error() -> None:
    error = json_of(ask("overflow"))["error"]
    assert isinstance(error, dict)
    assert error["code"] == "context_length_exceeded"


def test_without_a_slow_name_nothing_waits() -> None:
    assert not any(chunk.delay for chunk in ask("m", stream=True).chunks)


@pytest.mark.parametrize(("model", "pause"), [("echo+slow-20", 0.02), ("echo+typed", 0.03)])
def test_a_slow_name_waits_before_each_token(model: str, pause: float) -> None:
    delays = [chunk.delay for chunk in ask(model, stream=True).chunks]
    assert delays == [pause] * 3 + [0, 0]
    assert [chunk.delay for chunk in ask(model).chunks] == [pytest.approx(3 * pause)]


def test_a_name_with_first_waits_before_the_first_byte_only() -> None:
    assert [chunk.delay for chunk in ask("echo+first-500", stream=True).chunks] == [0.5, 0, 0, 0, 0]
    assert [chunk.delay for chunk in ask("first-500").chunks] == [0.5]


@looped(("name", "end"), [("cut", "cut"), ("eof", "eof"), ("hang", "hang")])
@looped("path", PATHS)
@looped("count", [0, 1, 2, 3, 9])
def test_a_broken_stream_has_its_tokens_and_no_ending(name: str, end: str, path: str, count: int) -> None:
    made = ask(f"echo+{name}-{count}", path, stream=True)
    assert (made.status, made.end) == (200, end)
    assert text_of(made) == "".join(["one", " two", " three"][:count])
    assert b"[DONE]" not in body_of(made)
    assert b'"finish_reason":"' not in body_of(made)


@looped("name", ["cut", "eof", "hang"])
def test_a_broken_whole_body_is_half_of_it(name: str) -> None:
    made = ask(f"{name}-1")
    whole = body_of(ask(f"m{name}-1"))
    assert 0 < len(body_of(made)) < len(whole)
    with pytest.raises(orjson.JSONDecodeError):
        json_of(made)


def test_an_error_in_the_middle_comes_after_its_tokens_and_ends_the_stream() -> None:
    made = ask("echo+midstream-error-2", stream=True)
    assert (made.status, made.end) == (200, "eof")
    assert text_of(made) == "one two"
    assert set(orjson.loads([*made.chunks][-1].data[6:])) == {"error"}


def test_an_error_in_the_middle_of_a_whole_body_is_an_error_with_status_200() -> None:
    made = ask("midstream-error-0")
    assert (made.status, set(json_of(made))) == (200, {"error"})


def test_a_malformed_answer_is_no_json() -> None:
    with pytest.raises(orjson.JSONDecodeError):
        json_of(ask("malformed"))
    made = ask("echo+malformed", stream=True)
    assert text_of(replace(made, chunks=[*made.chunks][:-1])) == "one"
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads([*made.chunks][-1].data[6:])


def test_an_empty_answer_is_whole() -> None:
    made = json_of(ask("empty"))
    assert made["choices"] == [{"index": 0, "text": "", "logprobs": None, "finish_reason": "stop"}]


def test_a_long_name_gives_that_many_tokens() -> None:
    usage = json_of(ask("long-321"))["usage"]
    assert isinstance(usage, dict)
    assert usage["completion_tokens"] == 321


def test_a_bad_request_is_an_openai_error() -> None:
    made = ask("m", n=0)
    assert made.status == 400
    error = json_of(made)["error"]
    assert isinstance(error, dict)
    assert (error["param"], error["type"]) == ("n", "invalid_request_error")


@given(
    st.sampled_from([*PATHS, "/models"]),
    st.one_of(
        st.binary(max_size=40),
        st.dictionaries(
            st.sampled_from(["model", "prompt", "messages", "n", "stream", "stop", "logprobs", "guided_json", "tools"]),
            st.recursive(
                st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=8)),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
                max_leaves=6,
            ),
        ).map(orjson.dumps),
    ),
)
def test_no_body_breaks_the_mock(path: str, body: bytes) -> None:
    made = respond(path, body)
    assert made.status in (200, 400, 404)
    assert made == respond(path, body)


def test_a_script_is_played_whole_and_streamed_and_with_the_other_words() -> None:
    body: JsonObject = {"messages": [{"role": "user", "content": '```script\n["one two", "three"]\n```'}]}
    for stream in (False, True):
        assert text_of(ask("script", "/chat/completions", stream=stream, **body)) == "one two"
    assert is_harmless("script")
    assert len(ask("script+cut-1", "/chat/completions", stream=True, **body).chunks) < len(  # type: ignore[arg-type]
        ask("script", "/chat/completions", stream=True, **body).chunks  # type: ignore[arg-type]
    )
    assert [chunk.delay for chunk in ask("script+slow-20", "/chat/completions", stream=True, **body).chunks] == [
        *[0, 0.02, 0.02, 0, 0]
    ]
