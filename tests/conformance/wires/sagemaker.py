"""SageMaker endpoints: a container's own answers behind Amazon's address, frames and errors.

Shapes: botocore 1.44.5 service model `sagemaker-runtime`.
"""

from collections.abc import Callable

import orjson

from providers.eventstream import encode
from providers.unified import JsonObject, JsonValue
from tests.conformance.engine import Ask
from tests.conformance.wires.openai import OPENAI
from tests.conformance.wires.tgi import TGI
from tests.conformance.wires.wire import Answered, Spoken, WireFormat

_ENDS = ("/invocations", "/invocations-response-stream")
_MEDIA = "application/vnd.amazon.eventstream"
_PART = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}


def _streams(path: str, body: JsonObject) -> bool:
    return path.endswith("-response-stream") and body.get("stream") is True


def _parts(frames: list[bytes]) -> list[bytes]:
    """The container's stream, cut without regard to it."""
    whole = b"".join(frames)
    return [encode(_PART, whole[start : start + 50]) for start in range(0, len(whole), 50)]


def _refused(by_container: Callable[[Ask], tuple[int, JsonObject]]) -> Callable[[Ask], tuple[int, JsonObject]]:
    def too_large(ask: Ask) -> tuple[int, JsonObject]:
        status, said = by_container(ask)
        told = orjson.dumps(said).decode()
        message = f"Received client error ({status}) from primary with message"
        return 424, {"OriginalStatusCode": status, "OriginalMessage": told, "Message": message}

    return too_large


def _of(body: JsonObject) -> WireFormat:
    chat, text = OPENAI.calls
    return chat if "messages" in body else text


def _openai_ask(body: JsonObject) -> Ask:
    return _of(body).ask(body)


def _openai_whole(body: JsonObject, answered: Answered) -> JsonValue:
    return _of(body).whole(body, answered)


def _openai_frames(body: JsonObject, answered: Answered) -> list[bytes]:
    return _parts(_of(body).frames(body, answered))


def _tgi_frames(body: JsonObject, answered: Answered) -> list[bytes]:
    return _parts(TGI.calls[0].frames(body, answered))


SAGEMAKER = Spoken(
    calls=(WireFormat(_ENDS, _openai_ask, _openai_whole, _openai_frames, _streams, _MEDIA),),
    too_large=_refused(OPENAI.too_large),
)
# Its answers with a prompt's log probabilities are whole, whatever the client wants.
SAGEMAKER_TGI = Spoken(
    calls=(
        WireFormat(_ENDS[1:], TGI.calls[0].ask, TGI.calls[0].whole, _tgi_frames, _streams, _MEDIA),
        WireFormat(_ENDS[:1], TGI.calls[0].ask, TGI.calls[0].whole, _tgi_frames, lambda path, body: False, _MEDIA),
    ),
    too_large=_refused(TGI.too_large),
)
