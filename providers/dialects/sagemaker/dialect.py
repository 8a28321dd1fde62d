"""The dialect of Amazon SageMaker endpoints: a container's own wire format behind Amazon's URLs, frames and errors.

The container's dialect encodes requests and decodes responses. Another module signs the requests.

Sources: botocore 1.44.5 service model `sagemaker-runtime`, operations `InvokeEndpoint` and
`InvokeEndpointWithResponseStream`; TGI's `router/src/lib.rs` (`/invocations`); vLLM's route of the same name. Read in
November 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

import orjson

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import Dialect, StreamDecoder, UpstreamRequest
from providers.dialects.openai.dialect import OpenAIDialect
from providers.dialects.platforms.aws_errors import SAGEMAKER, classify_answer, read_container_answer
from providers.dialects.sagemaker.container_stream import FramedStream, container_bytes
from providers.dialects.tgi.answer import STREAM_PATH, WHOLE_PATH, is_stream
from providers.dialects.tgi.dialect import TgiDialect
from providers.failure import Failure
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import UnifiedRequest

_STREAM, _WHOLE = "invocations-response-stream", "invocations"


@dataclass(frozen=True, slots=True)
class Container:
    """The dialect of a container.

    `streams` returns whether the container's response to a call is a stream. `url_end` returns the end of the URL from
    which the dialect recognizes a framed (`True`) or plain (`False`) response.
    """

    dialect: Dialect
    streams: Callable[[UpstreamRequest], bool]
    url_end: Callable[[bool], str]


OPENAI_CONTAINER = Container(OpenAIDialect(), lambda sent: sent.stream, lambda framed: "")
TGI_CONTAINER = Container(TgiDialect(), is_stream, lambda framed: STREAM_PATH if framed else WHOLE_PATH)


@dataclass(frozen=True, slots=True)
class SageMakerDialect:
    """The `Dialect` of an endpoint whose container speaks another dialect."""

    container: Container

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return self.container.dialect.capabilities(request, target)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        inner = self.container.dialect.encode(request, target)
        streams = self.container.streams(inner)
        body: JsonObject = orjson.loads(inner.body)
        # The upstream model is the name of the SageMaker endpoint, which the container does not know.
        body.pop("model", None)
        if streams:
            body["stream"] = True
        own = {name.lower(): value for name, value in inner.headers.items()}
        accept = {"x-amzn-sagemaker-accept": "text/event-stream"} if streams else {"accept": "application/json"}
        endpoint = f"{target.base_url}/endpoints/{quote(target.upstream_model, safe='')}"
        return replace(
            inner,
            url=f"{endpoint}/{_STREAM if streams else _WHOLE}",
            body=orjson.dumps(body),
            headers={**accept, **own},
        )

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        inner = self._container_call(sent)
        return self.container.dialect.decode(inner, container_bytes(body) if _is_framed(sent) else body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        inner = self.container.dialect.stream(self._container_call(sent))
        return FramedStream(inner) if _is_framed(sent) else inner

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        refusal = read_container_answer(body)
        if refusal is None:
            return classify_answer(SAGEMAKER, status, headers, body)
        inner_status, inner_body = refusal
        return self.container.dialect.classify(self._container_call(sent), inner_status, headers, inner_body)

    def _container_call(self, sent: UpstreamRequest) -> UpstreamRequest:
        """Return the call with the URL that the container's dialect expects."""
        return replace(sent, url=self.container.url_end(_is_framed(sent)))


def _is_framed(sent: UpstreamRequest) -> bool:
    return sent.url.endswith(f"/{_STREAM}")


def openai_container() -> SageMakerDialect:
    """Return the dialect of containers that speak OpenAI's wire format."""
    return SageMakerDialect(OPENAI_CONTAINER)


def tgi_container() -> SageMakerDialect:
    """Return the dialect of TGI's containers."""
    return SageMakerDialect(TGI_CONTAINER)
