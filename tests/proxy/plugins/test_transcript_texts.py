"""The texts of transcriptions, and transcriptions through the gateway with guards of responses."""

from pathlib import Path

import orjson
import pytest

from providers.failure import UpstreamError
from providers.json_types import JsonObject
from proxy.forms.spooled_form import MAX_FIELD
from proxy.hooks import request_hook
from proxy.plugins.transcript_texts import texts_of_transcript, with_transcript
from tests.proxy.gateway.test_pass_on_task import FILE, FORM_TYPE, form
from tests.proxy.kit.raw_client import Answer, exchange
from tests.proxy.kit.raw_client import request as raw_request
from tests.proxy.kit.whole_gateway import port_of, table_before, up
from tests.proxy.plugins.kit import HIDDEN, SECRET, plugin
from tests.support.http_scripts import body_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor

JSON = "application/json"
VERBOSE = {
    "task": "transcribe",
    "language": "english",
    "duration": 1.5,
    "text": f"say {SECRET}",
    "segments": [{"id": 0, "text": f" {SECRET}", "tokens": [1], "speaker": "A"}],
    "words": [{"word": SECRET, "start": 0.0}],
}
VTT = f"WEBVTT\n\n00:00.000 --> 00:01.000\n{SECRET}\n"


@pytest.mark.smoke
def test_every_text_of_a_transcription_is_shown_and_can_be_replaced() -> None:
    body = orjson.dumps(VERBOSE)
    shown = texts_of_transcript(JSON, body)
    assert [(each.text, each.place) for each in shown] == [
        ("english", "language"),
        (f"say {SECRET}", "text"),
        (f" {SECRET}", "segments[0].text"),
        ("A", "segments[0].speaker"),
        (SECRET, "words[0].word"),
    ]
    made = orjson.loads(with_transcript(JSON, body, ["english", "a", "b", "c", "d"]))
    assert (made["text"], made["segments"][0]["text"], made["words"][0]["word"]) == ("a", "b", "d")
    assert (made["duration"], made["language"], made["task"]) == (1.5, "english", "transcribe")


@looped(
    ("member", "texts"),
    [
        ({"task": "translate", "language": "pt-BR", "id": "seg_1", "type": "transcript.text.segment"}, []),
        ({"segments": [{"id": "seg_1", "type": "word"}], "usage": {"type": "tokens", "input_tokens": 1}}, []),
        *(({key: SECRET}, [SECRET]) for key in ("task", "language", "type", "speaker")),
        *(({"usage": {key: f"a {SECRET}"}}, [f"a {SECRET}"]) for key in ("type", "id", "task")),
        ({SECRET: 1, "segments": [{SECRET: 2}]}, [SECRET, SECRET]),
    ],
)
def test_no_key_of_a_transcription_hides_a_text(member: JsonObject, texts: list[str]) -> None:
    body = orjson.dumps(member)
    assert [each.text for each in texts_of_transcript(JSON, body)] == texts
    made = with_transcript(JSON, body, [each.replace(SECRET, HIDDEN) for each in texts])
    assert SECRET.encode() not in made
    assert with_transcript(JSON, body, texts) == body


SPLIT = ("123", "-45", "-67", "89")
NUMBER = "123-45-6789"


def masked(body: bytes) -> bytes:
    """Return a transcription as a guard that masks NUMBER leaves it."""
    shown = texts_of_transcript(JSON, body)
    return with_transcript(JSON, body, [each.text.replace(NUMBER, "***") for each in shown])


@looped(("name", "member"), [("segments", "text"), ("words", "word"), ("chunks", "text")])
def test_threat_17_what_is_split_over_pieces_is_seen_and_does_not_pass(name: str, member: str) -> None:
    pieces = [{"id": at, member: text} for at, text in enumerate(SPLIT)]
    body = orjson.dumps({"text": f"it is {NUMBER}", name: pieces, "duration": 1.5})
    assert [each.place for each in texts_of_transcript(JSON, body) if NUMBER in each.text] == ["text", name]
    assert orjson.loads(masked(body)) == {"text": "it is ***", "duration": 1.5}


SRT = "1\n00:00:00,000 --> 00:00:01,000\nit is 123-45-\n\n2\n00:00:01,000 --> 00:00:02,000\n6789\n"
CUES = "WEBVTT\n\nfirst\n00:00.000 --> 00:01.000\nit is 123-45-\n\n00:01.000 --> 00:02.000\n6789\n"


@looped(("kind", "text"), [("application/x-subrip", SRT), ("text/plain", SRT), ("text/vtt", CUES)])
def test_threat_17_what_is_split_over_cues_is_seen_and_does_not_pass(kind: str, text: str) -> None:
    shown = [each.text for each in texts_of_transcript(kind, text.encode())]
    assert f"it is {NUMBER}" in shown
    with pytest.raises(UpstreamError, match="split over cues"):
        with_transcript(kind, text.encode(), [each.replace(NUMBER, "***") for each in shown])
    whole = text.replace("123-45-", "nothing").replace("6789", NUMBER)
    kept = [each.text.replace(NUMBER, "***") for each in texts_of_transcript(kind, whole.encode())]
    assert with_transcript(kind, whole.encode(), kept) == whole.replace(NUMBER, "***").encode()


@pytest.mark.smoke
def test_pieces_that_were_masked_one_by_one_stay() -> None:
    body = orjson.dumps({"segments": [{"text": "it is "}, {"text": NUMBER}]})
    assert orjson.loads(masked(body)) == {"segments": [{"text": "it is "}, {"text": "***"}]}
    unchanged = orjson.dumps({"words": [{"word": "a"}, {"word": "b"}]})
    assert masked(unchanged) == unchanged


@pytest.mark.smoke
def test_what_is_no_json_is_one_text() -> None:
    (shown,) = texts_of_transcript("text/vtt", VTT.encode())
    assert (shown.text, shown.role) == (VTT, "assistant")
    assert with_transcript("text/vtt", VTT.encode(), ["é"]) == "é".encode()


@looped(
    ("kind", "body"),
    [
        (JSON, b"{"),
        (JSON, b"[]"),
        (JSON, b'{"a":' * 300 + b"1" + b"}" * 300),
        (JSON, b'{"a":' * 900 + b"1" + b"}" * 900),
        ("text/plain", b"\xff"),
    ],
)
def test_what_cannot_be_read_is_the_vendor_s_fault(kind: str, body: bytes) -> None:
    with pytest.raises(UpstreamError):
        with_transcript(kind, body, [])


async def transcribed(folder: Path, guard: str, kind: str, body: bytes, *fields: tuple[str, bytes]) -> Answer:
    content = form(("model", b"v/m"), *fields, FILE)
    head = raw_request("POST", "/v1/audio/transcriptions", content, FORM_TYPE)
    async with (
        FakeVendor(body_answer(200, body, [("content-type", kind)])) as vendor,
        up(f"{table_before(vendor)}plugins: {{g: {guard}}}\n", folder) as app,
    ):
        return await exchange(port_of(app.url), head)


@pytest.mark.parametrize(("kind", "body"), [(JSON, orjson.dumps(VERBOSE)), ("text/vtt; charset=utf-8", VTT.encode())])
async def test_a_transcription_passes_the_guards_of_answers(tmp_path: Path, kind: str, body: bytes) -> None:
    answer = await transcribed(tmp_path, plugin("Hider", "where: answer"), kind, body)
    assert (answer.status, answer.headers["content-type"], answer.whole) == (200, kind, True)
    assert SECRET.encode() not in answer.body
    assert HIDDEN.encode() in answer.body
    assert answer.headers["x-dragoman-guarded"] == "g"
    assert answer.headers["content-length"] == str(len(answer.body))


async def test_a_refused_transcription_is_an_error_and_one_that_passes_is_as_it_came(tmp_path: Path) -> None:
    body = orjson.dumps(VERBOSE)
    refused = await transcribed(tmp_path, plugin("Refuser"), JSON, body)
    assert (refused.status, b"Refused by the plugin 'g'" in refused.body) == (400, True)
    passed = await transcribed(tmp_path, plugin("Refuser", "word: absent"), JSON, body)
    assert (passed.status, passed.body) == (200, body)


async def test_a_streamed_transcription_is_refused_by_name_where_guards_check_answers(tmp_path: Path) -> None:
    answer = await transcribed(tmp_path, plugin("Refuser"), JSON, b"{}", ("stream", b"true"))
    assert answer.status == 400
    assert orjson.loads(answer.body)["error"]["param"] == "stream"
    passed = await transcribed(tmp_path, plugin("RequestRefuser"), "text/event-stream", b"", ("stream", b"true"))
    assert passed.status == 200


@pytest.mark.parametrize("value", [b"1", b"on", b"yes", b"t", b"y", b"TRUE", b" true", b"0", b"", b"false "])
async def test_any_stream_but_false_is_refused_where_guards_check_answers(tmp_path: Path, value: bytes) -> None:
    answer = await transcribed(tmp_path, plugin("Refuser"), JSON, b"{}", ("stream", value))
    assert (answer.status, orjson.loads(answer.body)["error"]["param"]) == (400, "stream")


@pytest.mark.smoke
@pytest.mark.parametrize("value", [b"false", b"False"])
async def test_no_stream_may_be_asked_for_where_guards_check_answers(tmp_path: Path, value: bytes) -> None:
    answer = await transcribed(tmp_path, plugin("Refuser"), JSON, b'{"text":"a"}', ("stream", value))
    assert (answer.status, answer.body) == (200, b'{"text":"a"}')


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["text/event-stream", "Text/Event-Stream; charset=utf-8", "application/x-ndjson"])
async def test_threat_17_a_stream_that_nobody_asked_for_passes_no_guard_of_answers(tmp_path: Path, kind: str) -> None:
    events = b"".join([b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % text.encode() for text in SPLIT])
    answer = await transcribed(tmp_path, plugin("Refuser", f"word: '{NUMBER}'"), kind, events)
    assert (answer.status, b"123" in answer.body) == (502, False)
    passed = await transcribed(tmp_path, plugin("RequestRefuser"), kind, events)
    assert (passed.status, passed.body) == (200, events)


async def test_one_too_long_or_unreadable_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await transcribed(tmp_path, plugin("Refuser"), JSON, b"{")
    assert answer.status == 502
    monkeypatch.setattr("proxy.gateway.pass_on_task.MOST_CHECKED", 10)
    assert (await transcribed(tmp_path, plugin("Refuser"), "text/plain", b"x" * 11)).status == 502
    assert request_hook.MOST_CHECKED == 8 * 2**20


async def test_a_field_of_a_form_that_guards_cannot_see_whole_is_refused_by_name(tmp_path: Path) -> None:
    body, long = orjson.dumps(VERBOSE), b"x" * (MAX_FIELD + 1)
    answer = await transcribed(tmp_path, plugin("Hider", "where: request"), JSON, body, ("prompt", long))
    assert (answer.status, orjson.loads(answer.body)["error"]["param"]) == (400, "prompt")
    sounds = ("known_speaker_references[]", b"data:audio/wav;base64," + long)
    passed = await transcribed(tmp_path, plugin("Hider", "where: request"), JSON, body, sounds, ("prompt", long[1:]))
    assert passed.status == 200
