"""A fault of our own at any step: the client learns that there was one, the log has its position, and no output has its
text."""

import logging
import ssl
from collections.abc import Iterator
from io import StringIO

import aiohttp
import pytest

from providers.completion import StreamEvent
from providers.dialect import UpstreamRequest
from proxy.process.request_observer import LINE_WRITERS
from proxy.telemetry.process_log import JsonFormatter, TextFormatter
from tests.proxy.kit.gateway_rig import ask, rig
from tests.security.canary import canary, leaks
from tests.support import openai_wire
from tests.support.http_scripts import json_answer, sse_answer

SECRET = canary("vendor-key")

STEPS = (
    "proxy.gateway.handle_request.key_of",
    "proxy.gateway.client_exchange.plan_for",
    "proxy.gateway.answer_generation.permit_extras",
    "proxy.http_client.http_transport.HttpTransport.open",
    "proxy.http_client.http_response.HttpResponse.read",
    "proxy.http_client.address_guard.GuardedResolver.resolve",
    "proxy.surfaces.completion_surface.CompletionSurface.parse",
    "proxy.surfaces.completion_surface.CompletionSurface.renderer",
    "providers.dialects.openai.dialect.OpenAIDialect.encode",
    "providers.dialects.openai.dialect.OpenAIDialect.decode",
    "providers.dialects.openai.dialect.OpenAIDialect.stream",
    "providers.dialects.openai.dialect.OpenAIDialect.classify",
)
"""The steps of a request: functions of modules, and methods of classes."""


def chained() -> Exception:
    error = RuntimeError(f"bad value {SECRET!r}")
    error.__cause__ = KeyError(SECRET)
    error.add_note(SECRET)
    return error


FAULTS: tuple[Exception, ...] = (
    chained(),
    KeyError(SECRET),
    UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
    OSError(5, SECRET, SECRET),
    ssl.SSLError(1, SECRET),
    TimeoutError(SECRET),
    ConnectionResetError(104, SECRET),
    aiohttp.InvalidURL(f"http://x/?key={SECRET}"),
    aiohttp.ServerDisconnectedError(SECRET),
    ExceptionGroup(SECRET, [ValueError(SECRET)]),
)


@pytest.fixture
def written() -> Iterator[StringIO]:
    """All output of the loggers of the process, in both formats."""
    stream = StringIO()
    root, dragoman = logging.getLogger(), logging.getLogger("dragoman")
    handlers = [logging.StreamHandler(stream), logging.StreamHandler(stream)]
    handlers[0].setFormatter(JsonFormatter())
    handlers[1].setFormatter(TextFormatter())
    kept, level = root.handlers[:], dragoman.level
    root.handlers[:] = handlers
    dragoman.setLevel(logging.INFO)
    yield stream
    root.handlers[:] = kept
    dragoman.setLevel(level)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: ".".join(step.split(".")[-2:]))
async def test_the_text_of_no_exception_reaches_a_client_or_a_log(
    step: str, stream: bool, monkeypatch: pytest.MonkeyPatch, written: StringIO
) -> None:
    good = sse_answer(openai_wire.completion_frames(["a"])) if stream else json_answer(200, openai_wire.completion("a"))
    async with rig() as made:
        for fault in FAULTS:
            made.vendor.answer(json_answer(500, {}) if step.endswith("classify") else good)
            with monkeypatch.context() as patched:
                patched.setattr(step, thrower(fault))
                answer = await made.post("/v1/completions", ask("local/m", stream=stream))
            places = {"client": f"{answer.headers} {answer.body!r}", "log": written.getvalue()}
            assert leaks(places) == [], fault
        await made.finished(len(FAULTS))
        lines = b"".join(write(record, record.cost) for write in LINE_WRITERS.values() for record in made.records)
        shown: dict[str, str | bytes] = {"log": lines, "records": repr(made.records), "metrics": made.metrics.render()}
        assert leaks(shown) == []


def thrower(fault: Exception) -> object:
    """Return a function that raises `fault` for any arguments."""

    def throw(*args: object, **names: object) -> None:
        raise fault

    return throw


async def test_what_is_logged_says_which_fault_it_was_and_where(
    monkeypatch: pytest.MonkeyPatch, written: StringIO
) -> None:
    async with rig() as made:
        monkeypatch.setattr("proxy.gateway.client_exchange.plan_for", thrower(chained()))
        answer = await made.post("/v1/completions", ask())
    assert (answer.status, answer.code) == (500, "internal_error")
    for told in ("RuntimeError", "KeyError", "in throw", "in answer"):
        assert told in written.getvalue()
    assert answer.headers["x-request-id"] in written.getvalue()


class Faulty:
    """A decoder that fails in the middle of a stream."""

    complete = False

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        raise chained()

    def finish(self) -> Iterator[StreamEvent]:
        raise chained()


async def test_a_decoder_s_fault_is_told_no_differently(monkeypatch: pytest.MonkeyPatch, written: StringIO) -> None:
    def stream(self: object, sent: UpstreamRequest) -> Faulty:
        return Faulty()

    monkeypatch.setattr("providers.dialects.openai.dialect.OpenAIDialect.stream", stream)
    async with rig() as made:
        made.vendor.answer(sse_answer(openai_wire.completion_frames(["a", "b"])))
        answer = await made.post("/v1/completions", ask(stream=True))
    assert (answer.status, answer.code) == (500, "internal_error")
    assert leaks({"client": repr(answer.body), "log": written.getvalue()}) == []
    assert "in feed" in written.getvalue()
