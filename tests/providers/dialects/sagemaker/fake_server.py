"""SageMaker endpoints: a container's own responses behind Amazon's address, frames and errors.

Shapes: botocore 1.44.5 service model `sagemaker-runtime`.
"""

from collections.abc import Callable

import orjson

from providers.framing.parse_aws_eventstream import encode
from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import EngineRequest
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint
from tests.providers.dialects.openai.fake_server import OPENAI
from tests.providers.dialects.tgi.fake_server import TGI

_ENDS = ("/invocations", "/invocations-response-stream")
_MEDIA = "application/vnd.amazon.eventstream"
_PART = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}


def _streams(path: str, body: JsonObject) -> bool:
    return path.endswith("-response-stream") and body.get("stream") is True


def _parts(frames: list[bytes]) -> list[bytes]:
    """Return the container's stream, cut at arbitrary positions."""
    whole = b"".join(frames)
    return [encode(_PART, whole[start : start + 50]) for start in range(0, len(whole), 50)]


def _refused(
    by_container: Callable[[EngineRequest], tuple[int, JsonObject]],
) -> Callable[[EngineRequest], tuple[int, JsonObject]]:
    def too_large(request: EngineRequest) -> tuple[int, JsonObject]:
        status, said = by_container(request)
        told = orjson.dumps(said).decode()
        message = f"Received client error ({status}) from primary with message"
        return 424, {"OriginalStatusCode": status, "OriginalMessage": told, "Message": message}

    return too_large


def _of(body: JsonObject) -> FakeEndpoint:
    chat, text, _ = OPENAI.calls
    return chat if "messages" in body else text


def _openai_ask(body: JsonObject) -> EngineRequest:
    return _of(body).read_request(body)


def _openai_whole(body: JsonObject, answered: EngineAnswer) -> JsonValue:
    return _of(body).whole(body, answered)


def _openai_frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return _parts(_of(body).frames(body, answered))


def _tgi_frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return _parts(TGI.calls[0].frames(body, answered))


SAGEMAKER = FakeDialect(
    calls=(FakeEndpoint(_ENDS, _openai_ask, _openai_whole, _openai_frames, _streams, _MEDIA),),
    too_large=_refused(OPENAI.too_large),
)
# Its responses with a prompt's log probabilities are non-streaming, even if the client requests a stream.
SAGEMAKER_TGI = FakeDialect(
    calls=(
        FakeEndpoint(_ENDS[1:], TGI.calls[0].read_request, TGI.calls[0].whole, _tgi_frames, _streams, _MEDIA),
        FakeEndpoint(
            _ENDS[:1], TGI.calls[0].read_request, TGI.calls[0].whole, _tgi_frames, lambda path, body: False, _MEDIA
        ),
    ),
    too_large=_refused(TGI.too_large),
)

FAKE_DIALECTS = {"sagemaker": SAGEMAKER, "sagemaker_tgi": SAGEMAKER_TGI}
