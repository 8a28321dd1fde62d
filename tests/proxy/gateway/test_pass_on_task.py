"""Moderations, audio and images through the gateway: routed, retried, and relayed unchanged."""

from collections.abc import AsyncIterator, Sequence

import orjson
import pytest

from providers.completion import Usage
from providers.json_types import JsonObject
from proxy.gateway import pass_on_task
from proxy.overload.admission_limits import FairCounts
from tests.proxy.kit.gateway_rig import MAX_BODY, TABLE, Rig, rig
from tests.support.http_scripts import body_answer, chunk, cut, json_answer, size_of, sse_answer, sse_unterminated
from tests.support.vendor_script import Delay, Fin, Loop, Script, Send

pytestmark = pytest.mark.smoke


WITH_DEFAULT = (
    TABLE.replace(
        "teams:",
        "  voice: {targets: [v/m, v/two]}\nserver: {surfaces: {openai: {task_models: {moderations: v/m}}}}\nteams:",
    )
    .replace("models: [v/m,", "models: [voice, v/m,")
    .replace("attempts: 1", "attempts: 2")
)

VERDICT = b'{"id": "modr-1",\n "model": "omni-moderation-2024", "results": [{"flagged": false, "scores": 1.0e-3}]}'
SOUND = bytes(range(256)) * 40
OFF = json_answer(503, {"error": {"message": "down"}})
MP3 = body_answer(200, SOUND, [("content-type", "audio/mpeg")])
EVENTS = b'data: {"type":"image_generation.partial_image","b64_json":"QQ=="}\n\n'


@pytest.fixture
async def passing() -> AsyncIterator[Rig]:
    async with rig(WITH_DEFAULT) as made:
        yield made


def form(*parts: tuple[str, bytes], boundary: str = "xyz", filename: str = "a.wav") -> bytes:
    lines = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
        % (boundary.encode(), name.encode(), b'; filename="%b"' % filename.encode() if name == "file" else b"", value)
        for name, value in parts
    ]
    return b"".join(lines) + b"--%b--\r\n" % boundary.encode()


FORM_TYPE = {"Content-Type": "multipart/form-data; boundary=xyz"}
FILE, MODEL = ("file", SOUND), ("model", b"v/m")
WORDS = [("timestamp_granularities[]", b"word"), ("timestamp_granularities[]", b"segment")]


async def test_an_answer_comes_back_byte_for_byte_and_the_model_is_the_vendor_s(passing: Rig) -> None:
    passing.vendor.answer(body_answer(200, VERDICT, [("content-type", "application/json")]))
    answer = await passing.post("/v1/moderations", {"model": "v/m", "input": ["a", "b"]})
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, VERDICT, "application/json")
    assert answer.headers["content-length"] == str(len(VERDICT))
    assert answer.headers["x-dragoman-deployment"] == "v/m/default"
    (sent,) = passing.vendor.requests
    assert (sent.path, sent.json()) == ("/v1/moderations", {"model": "m", "input": ["a", "b"]})
    (record,) = await passing.finished(1)
    assert (record.status, record.outcome, record.asked, record.model) == (200, "ok", "v/m", "v/m")


async def test_a_task_may_have_a_model_of_its_own_for_clients_that_name_none(passing: Rig) -> None:
    passing.vendor.default = json_answer(200, {"results": []})
    assert (await passing.post("/v1/moderations", {"input": "hi"})).status == 200
    missing = await passing.post("/v1/images/generations", {"prompt": "a cat"})
    assert (missing.status, missing.error()["param"], missing.message) == (400, "model", "'model' is required.")


@pytest.mark.parametrize("parts", [[FILE, MODEL, *WORDS], [MODEL, *WORDS, FILE], [*WORDS, FILE, ("model", b"voice")]])
async def test_a_form_goes_on_whole_wherever_its_model_stands(passing: Rig, parts: Sequence[tuple[str, bytes]]) -> None:
    passing.vendor.answer(body_answer(200, b"hello\n", [("content-type", "text/plain; charset=utf-8")]))
    answer = await passing.post("/v1/audio/transcriptions", form(*parts), FORM_TYPE)
    assert (answer.status, answer.body) == (200, b"hello\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    (sent,) = passing.vendor.requests
    kind, _, boundary = (sent.header("content-type") or "").partition("; boundary=")
    expected = form(("model", b"m"), *[part for part in parts if part[0] != "model"], boundary=boundary)
    assert (sent.body, kind) == (expected, "multipart/form-data")
    assert boundary != "xyz"
    assert sent.header("content-length") == str(len(expected))


@pytest.mark.parametrize("task", ["speech", "transcriptions"])
async def test_another_deployment_is_called_before_the_first_byte(passing: Rig, task: str) -> None:
    passing.vendor.answer(OFF, MP3)
    if task == "speech":
        answer = await passing.post("/v1/audio/speech", {"model": "voice", "input": "hi", "voice": "x"})
    else:
        answer = await passing.post("/v1/audio/transcriptions", form(FILE, ("model", b"voice")), FORM_TYPE)
    assert (answer.status, answer.body) == (200, SOUND)
    first, second = passing.vendor.requests
    assert (len(first.body), answer.headers["x-dragoman-attempts"]) == (len(second.body) - 2, "2")


@pytest.mark.parametrize("size", [0, 100])
async def test_an_answer_that_breaks_off_is_no_whole_one(passing: Rig, size: int) -> None:
    passing.vendor.answer(cut(MP3, size_of(MP3) - len(SOUND) + size, Fin()))
    answer = await passing.post("/v1/audio/speech", {"model": "v/m", "input": "hi", "voice": "x"})
    (record,) = await passing.finished(1)
    if size:
        assert not answer.whole
        assert (record.outcome, record.code) == ("truncated", "upstream_error")
    else:
        assert (answer.status, answer.code) == (502, "upstream_error")


COMPLETED = b'data: {"type":"image_generation.completed","b64_json":"QUFB"}\n\n'


async def test_events_that_end_before_their_last_one_look_broken(passing: Rig) -> None:
    passing.vendor.answer(sse_answer(EVENTS * 2))
    answer = await passing.post("/v1/images/generations", {"model": "v/m", "prompt": "a cat", "stream": True})
    assert not answer.whole
    assert orjson.loads(answer.events()[-1])["error"]["code"] == "upstream_error"
    (record,) = await passing.finished(1)
    assert record.outcome == "truncated"


async def test_pings_do_not_renew_the_limit_of_progress(passing: Rig) -> None:
    passing.table(TABLE.replace("attempts: 1}", "attempts: 1}, timeouts: {idle: 20s, progress: 200ms}"))
    head, *_ = sse_answer(EVENTS)
    passing.vendor.answer((head, Send(chunk(EVENTS)), Loop((Send(chunk(b": ping\n\n")), Delay(0.02)))))
    answer = await passing.post("/v1/images/generations", {"model": "v/m", "prompt": "a cat", "stream": True})
    assert orjson.loads(answer.events()[-1])["error"]["message"] == "The upstream sent no content for 0.2 s."


async def test_no_error_is_written_into_half_an_event(passing: Rig) -> None:
    passing.vendor.answer(sse_unterminated(EVENTS + EVENTS[:20], Fin()))
    answer = await passing.post("/v1/images/generations", {"model": "v/m", "prompt": "a cat", "stream": True})
    assert not answer.whole
    assert answer.body == EVENTS + EVENTS[:20]


@pytest.mark.parametrize("field", ["inference_timeout", "inference_extra_params", "inference_extra_headers"])
async def test_the_gateway_s_own_fields_never_reach_the_vendor(passing: Rig, field: str) -> None:
    values: JsonObject = {
        "inference_timeout": 5,
        "inference_extra_params": {"style": "vivid"},
        "inference_extra_headers": {"x-title": "mine"},
    }
    passing.vendor.default = json_answer(200, {})
    answer = await passing.post("/v1/images/generations", {"model": "v/m", "prompt": "a", field: values[field]})
    assert answer.status == 200
    (sent,) = passing.vendor.requests
    params: JsonObject = {"style": "vivid"} if field == "inference_extra_params" else {}
    assert sent.json() == {"model": "m", "prompt": "a", **params}
    assert sent.header("x-title") == ("mine" if field == "inference_extra_headers" else None)
    named = await passing.post("/v1/audio/transcriptions", form(FILE, MODEL, (field, b"1")), FORM_TYPE)
    assert (named.status, named.error()["param"]) == (400, field)


@pytest.mark.parametrize("name", ["v/m\n", " v/m", "v/\x00", "v/" + "m" * 300])
async def test_a_model_s_name_is_checked_as_that_of_a_chat(passing: Rig, name: str) -> None:
    refused = await passing.post("/v1/moderations", {"model": name, "input": "a"})
    assert (refused.status, refused.error()["param"]) == (400, "model")
    parts = form(FILE, ("model", name.encode()))
    refused = await passing.post("/v1/audio/transcriptions", parts, FORM_TYPE)
    assert (refused.status, refused.error()["param"]) == (400, "model")
    assert passing.vendor.requests == []


async def test_a_form_with_two_models_is_refused(passing: Rig) -> None:
    answer = await passing.post("/v1/audio/transcriptions", form(MODEL, FILE, ("model", b"v/two")), FORM_TYPE)
    assert (answer.status, answer.message) == (400, "The request body has more than one 'model'.")


@pytest.mark.parametrize("broken", [False, True])
async def test_events_are_relayed_and_end_with_the_error_where_they_break(passing: Rig, broken: bool) -> None:
    script: Script = sse_unterminated(EVENTS * 2, Fin()) if broken else sse_answer(EVENTS * 2 + COMPLETED)
    passing.vendor.answer(script)
    answer = await passing.post("/v1/images/generations", {"model": "v/m", "prompt": "a cat", "stream": True})
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.body.startswith(EVENTS * 2)
    assert answer.whole is not broken
    if broken:
        assert orjson.loads(answer.events()[-1])["error"]["code"] == "upstream_error"
    (record,) = await passing.finished(1)
    assert record.stream


async def test_a_vendor_s_refusal_is_told_in_the_surface_s_envelope(passing: Rig) -> None:
    passing.vendor.answer(json_answer(400, {"error": {"message": "voice is not valid", "param": "voice"}}))
    answer = await passing.post("/v1/audio/speech", {"model": "v/m", "input": "hi", "voice": "nobody"})
    assert (answer.status, answer.message) == (400, "voice is not valid")


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    [
        (form(FILE), FORM_TYPE, 400, "'model' is required."),
        (form(FILE, MODEL)[:-8], FORM_TYPE, 400, "The request body ends before the last boundary of its form."),
        (b"{}", {"Content-Type": "application/json"}, 400, "must be multipart/form-data"),
        (form(FILE, MODEL), {"Content-Type": "multipart/form-data"}, 400, "must be multipart/form-data"),
        (form(("file", bytes(MAX_BODY)), MODEL), FORM_TYPE, 413, "larger than"),
        (form(FILE, ("model", b"v/none")), FORM_TYPE, 404, "v/none"),
    ],
)
async def test_a_form_that_cannot_be_sent_is_refused_by_what_it_lacks(
    passing: Rig, body: bytes, headers: dict[str, str], status: int, message: str
) -> None:
    answer = await passing.post("/v1/audio/transcriptions", body, headers)
    assert answer.status == status
    assert message in answer.message
    assert passing.vendor.requests == []


async def test_forms_share_what_there_is_of_the_disk(passing: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[FairCounts] = []

    class Counted(FairCounts):
        def __init__(self, limit: int) -> None:
            super().__init__(limit // 2**20)
            counts.append(self)

    monkeypatch.setattr(pass_on_task, "FairCounts", Counted)
    async with rig(WITH_DEFAULT) as small:
        answer = await small.post("/v1/audio/transcriptions", form(FILE, MODEL), FORM_TYPE)
        assert (answer.status, answer.code) == (503, "overloaded")
    assert [count.total for count in counts] == [0]


@pytest.mark.parametrize("broken", [False, True])
async def test_tokens_that_a_vendor_reports_of_an_image_are_counted(passing: Rig, broken: bool) -> None:
    end = b'data: {"type":"image_generation.completed","usage":{"input_tokens":4,"output_tokens":5}}\n\n'
    passing.vendor.answer(sse_unterminated(EVENTS + end, Fin()) if broken else sse_answer(EVENTS + end))
    await passing.post("/v1/images/generations", {"model": "v/m", "prompt": "a", "stream": True})
    (record,) = await passing.finished(1)
    assert record.usage == Usage(4, 5)
