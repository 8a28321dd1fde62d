"""SageMaker endpoints: a container's own wire behind Amazon's address, frames and errors.

Never a signature, and never what a body means: that is the container's dialect.

Sources: botocore 1.44.5 service model `sagemaker-runtime`, operations `InvokeEndpoint` and
`InvokeEndpointWithResponseStream`; TGI's `router/src/lib.rs` (`/invocations`); vLLM's route of that name. Read in
November 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

import orjson

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import Dialect, StreamDecoder, Target, UpstreamRequest
from providers.dialects.openai import OpenAIDialect
from providers.dialects.sagemaker_errors import classify
from providers.dialects.sagemaker_frames import FramedStream, contents
from providers.dialects.tgi import TgiDialect
from providers.dialects.tgi_answer import STREAM_PATH, WHOLE_PATH, is_stream
from providers.failure import Failure
from providers.unified import JsonObject, UnifiedRequest

_STREAM, _WHOLE = "invocations-response-stream", "invocations"


@dataclass(frozen=True, slots=True)
class Container:
    """The wire of a container. `streams` says whether it is to answer a call of its dialect's with a stream; `address`
    is, for each of the two, the end of an address by which the dialect tells them apart."""

    dialect: Dialect
    streams: Callable[[UpstreamRequest], bool]
    address: Callable[[bool], str]


OPENAI_CONTAINER = Container(OpenAIDialect(), lambda sent: sent.stream, lambda framed: "")
TGI_CONTAINER = Container(TgiDialect(), is_stream, lambda framed: STREAM_PATH if framed else WHOLE_PATH)


@dataclass(frozen=True, slots=True)
class SageMakerDialect:
    """See providers.dialect.Dialect."""

    container: Container

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return self.container.dialect.capabilities(request, target)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        inner = self.container.dialect.encode(request, target)
        streams = self.container.streams(inner)
        body: JsonObject = orjson.loads(inner.body)
        # The endpoint's name is no model's.
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
        """See Dialect."""
        inner = self._inner(sent)
        return self.container.dialect.decode(inner, contents(body) if _framed(sent) else body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        inner = self.container.dialect.stream(self._inner(sent))
        return FramedStream(inner) if _framed(sent) else inner

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect. What the container said itself is the container's to classify."""
        inner = self._inner(sent)

        def of_container(status: int, body: bytes) -> Failure:
            return self.container.dialect.classify(inner, status, headers, body)

        return classify(status, headers, body, of_container)

    def _inner(self, sent: UpstreamRequest) -> UpstreamRequest:
        """The call as the container's dialect knows it."""
        return replace(sent, url=self.container.address(_framed(sent)))


def _framed(sent: UpstreamRequest) -> bool:
    return sent.url.endswith(f"/{_STREAM}")
