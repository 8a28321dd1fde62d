"""The fake vendor of FailoverBench, byte for byte if the bytes matter: sixty words, and sixteen faults in sending them.

Times are in seconds of the bench's full profile, and are multiplied by a pace. Source:
github.com/failoverbench/failoverbench, failoverbench/wall.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from providers.json_types import JsonObject, JsonValue
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer
from tests.support.openai_wire import chat, chat_frames
from tests.support.vendor_script import Delay, Fin, Received, Rst, Script, Send, Step

TEXT: Final = (
    "Somebody who asks a question wants one answer, whole and soon, and does not care which of the machines behind the "
    "door has just been switched off. So the door keeper counts every word that passes, says aloud when some are "
    "missing, sends the next visitor to the neighbour, and returns to the first machine once it works again tomorrow."
)
WORDS: Final = TEXT.split()
"""Sixty words. A response that lacks some of them counts as failed."""

TOKEN_EVERY: Final = 0.015
RETRY_AFTER: Final = 2.0
FIRST_TOKEN: Final = 20.0
SILENCE: Final = 120.0
STALL: Final = 30.0
OUTAGE: Final = 60.0
CUT_AFTER, STALLED_AFTER, MALFORMED_AT = 40, 20, 10
"""The number of words that arrive."""

MALFORMED: Final = (
    b'data: {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"delta": {"content": \n\n'
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a model. `number` counts requests from 1, `since` is the time since the run began in seconds of the
    bench, `pace` the duration of a second of the bench."""

    received: Received
    number: int
    since: float
    pace: float

    @property
    def body(self) -> JsonObject:
        body = self.received.json()
        assert isinstance(body, dict)
        return body

    @property
    def messages(self) -> list[JsonObject]:
        messages = self.body["messages"]
        assert isinstance(messages, list)
        return [message for message in messages if isinstance(message, dict)]

    @property
    def size(self) -> int:
        """Return the approximate number of tokens of the prompt."""
        return sum(len(str(message["content"]).split()) + 4 for message in self.messages)

    def delay(self, seconds: float) -> Delay:
        """Wait so many seconds of the bench."""
        return Delay(seconds * self.pace)


Model: TypeAlias = Callable[[Asked], Script]
"""The behaviour of a model of the vendor."""


def error(status: int, code: str | None, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Script:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    said: JsonValue = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json_answer(status, said, headers)


def _frames(asked: Asked) -> list[bytes]:
    """Return the role's frame, one frame for each word, the finish reason, usage if the request wants it, and the
    terminator."""
    model, options = str(asked.body["model"]), asked.body.get("stream_options")
    frames = chat_frames([word if at == 0 else f" {word}" for at, word in enumerate(WORDS)], model)
    with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return frames if with_usage else [*frames[:-2], frames[-1]]


def _started(asked: Asked, frames: list[bytes], wait: float = 0.0) -> Iterator[Step]:
    """Yield a stream with an immediate head, then these frames at the vendor's speed."""
    kind = [("content-type", "text/event-stream; charset=utf-8"), ("transfer-encoding", "chunked")]
    yield Send(head(200, kind))
    if wait:
        yield asked.delay(wait)
    for frame in frames:
        yield Send(chunk(frame))
        yield asked.delay(TOKEN_EVERY)


def well(asked: Asked) -> Script:
    """Send the sixty words."""
    if not asked.body.get("stream"):
        return json_answer(200, chat(TEXT, str(asked.body["model"])))
    return (*_started(asked, _frames(asked)), Send(LAST_CHUNK))


def well_without_prefill(asked: Asked) -> Script:
    """Respond well, but refuse to continue an assistant message."""
    if asked.messages[-1]["role"] == "assistant":
        return error(400, "invalid_prefill", "The conversation must end with a message of the user.")
    return well(asked)


def limited_once(asked: Asked) -> Script:
    """Send one 429 with a wait, then respond well."""
    if asked.number > 1:
        return well(asked)
    wait = f"{RETRY_AFTER * asked.pace:g}"
    return error(429, "rate_limit_exceeded", "Too many requests.", (("retry-after", wait),))


def limited(asked: Asked) -> Script:
    """Send 429 for ever, without a wait."""
    return error(429, "rate_limit_exceeded", "Too many requests.")


def broken_once(asked: Asked) -> Script:
    """Send one 500, then respond well."""
    return error(500, None, "Something went wrong here.") if asked.number == 1 else well(asked)


def overloaded(asked: Asked) -> Script:
    """Send 503 for ever."""
    return error(503, "overloaded", "There is too much to do at the moment.")


def reset_once(asked: Asked) -> Script:
    """Reset one connection before a byte of a response, then respond well."""
    return (Rst(),) if asked.number == 1 else well(asked)


def silent(asked: Asked) -> Script:
    """Send nothing for two minutes."""
    return (asked.delay(SILENCE), Fin())


def slow(asked: Asked) -> Script:
    """Send the head at once, the first word late, the others at normal speed."""
    return (*_started(asked, _frames(asked), FIRST_TOKEN), Send(LAST_CHUNK))


def cut(asked: Asked) -> Script:
    """Send forty words, then end the connection."""
    return (*_started(asked, _frames(asked)[: 1 + CUT_AFTER]), Fin())


def stalled(asked: Asked) -> Script:
    """Send twenty words, then be silent, then end the connection."""
    return (*_started(asked, _frames(asked)[: 1 + STALLED_AFTER]), asked.delay(STALL), Fin())


def malformed(asked: Asked) -> Script:
    """Send all words, and after ten of them an event that is not JSON."""
    frames = _frames(asked)
    frames.insert(1 + MALFORMED_AT, MALFORMED)
    return (*_started(asked, frames), Send(LAST_CHUNK))


def unterminated(asked: Asked) -> Script:
    """Send all words, usage and the end of the body, without `[DONE]`."""
    return (*_started(asked, _frames(asked)[:-1]), Send(LAST_CHUNK))


def too_long(asked: Asked) -> Script:
    """Refuse every prompt as too long."""
    return error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.")


def filtered(asked: Asked) -> Script:
    """Refuse every prompt as against the rules."""
    return error(400, "content_policy_violation", "The request was rejected by the safety system.")


def flapping(asked: Asked) -> Script:
    """Send 503 for a minute, then respond well."""
    return overloaded(asked) if asked.since < OUTAGE else well(asked)


def answered(script: Script) -> bool:
    """Return whether the script begins a response that is not an error."""
    first = script[0]
    return isinstance(first, Send) and first.data.startswith(b"HTTP/1.1 200 ")


def unfit(script: Script) -> bool:
    """Return whether the script refuses a conversation that ends with an assistant message."""
    first = script[0]
    return isinstance(first, Send) and b"invalid_prefill" in first.data
