"""Check calls of SageMaker endpoints against Amazon's service model (botocore 1.44.5, `sagemaker-runtime`).

A body belongs to the container and is opaque to the service; TGI's is checked by `tgi/sdk_types.py`. Addresses, headers
and frames are checked here.
"""

from typing import Any  # the SDK is not installed for the type check
from urllib.parse import urlsplit

import orjson
from botocore.eventstream import EventStreamBuffer
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.parsers import EventStreamJSONParser
from botocore.serialize import create_serializer

_MODEL = ServiceModel(Loader().load_service_model("sagemaker-runtime", "service-2"))


def check_call(url: str, headers: dict[str, str], endpoint: str) -> None:
    """Raise AssertionError unless the SDK would call the same address, with these headers among its own."""
    streams = url.endswith("-response-stream")
    operation = "InvokeEndpointWithResponseStream" if streams else "InvokeEndpoint"
    accept = headers.get("x-amzn-sagemaker-accept" if streams else "accept", "")
    params = {"EndpointName": endpoint, "Body": b"{}", "ContentType": "application/json", "Accept": accept}
    built = create_serializer("rest-json").serialize_to_request(params, _MODEL.operation_model(operation))
    assert urlsplit(url).path == built["url_path"], built["url_path"]
    wanted = {name.lower(): value for name, value in built["headers"].items() if name.lower() != "content-type"}
    assert wanted.items() <= headers.items(), wanted


def check_body(operation: str, body: bytes) -> None:
    """Raise unless the body is a JSON object of at most 25 MB, the service's limit."""
    assert isinstance(orjson.loads(body), dict)
    assert len(body) <= 25 * 1024 * 1024


def check_frames(data: bytes) -> bytes:
    """Return the container's bytes as the SDK reads them. Raise for a frame that the SDK would not read."""
    shape = _MODEL.operation_model("InvokeEndpointWithResponseStream").output_shape.members["Body"]
    buffer, parser = EventStreamBuffer(), EventStreamJSONParser()
    buffer.add_data(data)
    parts: list[bytes] = []
    for message in buffer:
        parsed: dict[str, Any] = parser.parse(message.to_response_dict(), shape)
        if "PayloadPart" in parsed:
            parts.append(parsed["PayloadPart"]["Bytes"])
    return b"".join(parts)
