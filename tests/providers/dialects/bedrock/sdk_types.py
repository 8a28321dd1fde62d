"""Check Bedrock's Converse against the service's own model (`botocore` 1.44.5).

botocore checks fields, types, unions and lower bounds; enumerations, patterns and upper bounds are checked here.
"""

import base64
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import orjson
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-not-found,import-untyped,unused-ignore]
from botocore.loaders import Loader  # type: ignore[import-not-found,import-untyped,unused-ignore]
from botocore.model import ServiceModel, Shape  # type: ignore[import-not-found,import-untyped,unused-ignore]
from botocore.parsers import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    EventStreamJSONParser,
    create_parser,
)
from botocore.serialize import create_serializer  # type: ignore[import-not-found,import-untyped,unused-ignore]
from botocore.validate import ParamValidator  # type: ignore[import-not-found,import-untyped,unused-ignore]

from providers.framing.parse_aws_eventstream import FrameParser, encode

Parameter: TypeAlias = Any  # JSON with bytes in it
Message: TypeAlias = Any  # the SDK's, which has no types

SERVICE = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
_MODEL = "us.anthropic.claude-haiku-4-5-20251001-v1:0"


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError for anything the service would not take, or would not be sent so by its client."""
    assert operation == "chat", operation
    sent = orjson.loads(body)
    for name in ("Converse", "ConverseStream"):
        shape = SERVICE.operation_model(name).input_shape
        params = {"modelId": _MODEL, **_params(sent, shape)}
        _check(params, shape)
        serialized = create_serializer("rest-json").serialize_to_request(params, SERVICE.operation_model(name))
        assert orjson.loads(serialized["body"]) == sent
    roles = [message["role"] for message in sent["messages"]]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))], roles
    blocks = [block for message in sent["messages"] for block in message["content"]]
    assert all(block.get("text", "x").strip() for block in [*blocks, *sent.get("system", [])]), "blank text"
    assert "toolConfig" in sent or not any("toolUse" in block or "toolResult" in block for block in blocks)
    if "outputConfig" in sent and "textFormat" in sent["outputConfig"]:
        assert isinstance(orjson.loads(sent["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]), dict)


def check_path(model: str, action: str, path: str) -> None:
    """The path of a call, as the service's client writes it."""
    operation = SERVICE.operation_model({"converse": "Converse", "converse-stream": "ConverseStream"}[action])
    params = {"modelId": model, "messages": []}
    assert create_serializer("rest-json").serialize_to_request(params, operation)["url_path"] == path


def check_answer(body: bytes) -> None:
    """Raise unless the service's client would read the response as one of Converse."""
    shape = SERVICE.operation_model("Converse").output_shape
    parsed = create_parser("rest-json").parse({"status_code": 200, "headers": {}, "body": body}, shape)
    del parsed["ResponseMetadata"]
    _check(parsed, shape)


def check_events(events: list[bytes]) -> None:
    """Frames of a stream, each of which its client would read as an event or an exception of ConverseStream."""
    stream = SERVICE.shape_for("ConverseStreamOutput")
    for message in framed(b"".join(events)):
        parsed = EventStreamJSONParser().parse(message.to_response_dict(), stream)
        assert parsed, message.headers
        for name, value in parsed.items():
            if name in stream.members:
                _check(value, stream.members[name])


def framed(data: bytes) -> list[Message]:
    """Return the events that the service's client reads in a stream. Our own reader and writer must agree byte for
    byte."""
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    messages = list(buffer)
    ours = list(FrameParser().feed(data))
    assert [(message.headers, message.payload) for message in messages] == [
        (dict(headers), payload) for headers, payload in ours
    ]
    assert b"".join(encode(message.headers, message.payload) for message in messages) == data
    return messages


def _params(value: Parameter, shape: Shape) -> Parameter:
    """JSON as the parameters of the client: bytes are base64 on the wire."""
    if getattr(shape, "is_document_type", False):
        return value
    if shape.type_name == "structure" and isinstance(value, dict):
        known = shape.members
        return {name: _params(each, known[name]) if name in known else each for name, each in value.items()}
    if shape.type_name == "list":
        return [_params(each, shape.member) for each in value]
    if shape.type_name == "blob" and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    return value


def _check(value: Parameter, shape: Shape) -> None:
    report = ParamValidator().validate(value, shape)
    assert not report.has_errors(), report.generate_report()
    wrong = list(_beyond(value, shape, ""))
    assert not wrong, wrong


def _beyond(value: Parameter, shape: Shape, path: str) -> Iterator[str]:
    if getattr(shape, "is_document_type", False):
        return
    if shape.type_name == "structure":
        for name, member in value.items():
            yield from _beyond(member, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for place, member in enumerate(value):
            yield from _beyond(member, shape.member, f"{path}[{place}]")
    elif shape.type_name == "map":
        for name, member in value.items():
            yield from _beyond(name, shape.key, f"{path}.{name}")
            yield from _beyond(member, shape.value, f"{path}.{name}")
    yield from _limits(value, shape, path)


def _limits(value: Parameter, shape: Shape, path: str) -> Iterator[str]:
    most = shape.metadata.get("max")
    if shape.type_name == "string":
        pattern = shape.metadata.get("pattern")
        if getattr(shape, "enum", None) and value not in shape.enum:
            yield f"{path}: {value!r} is no word of its enumeration"
        if pattern and not re.fullmatch(pattern, value):
            yield f"{path}: {value!r} does not match"
    size = value if isinstance(value, int | float) else len(value) if isinstance(value, str | list | dict) else 0
    if most is not None and size > most:
        yield f"{path}: {size} is more than {most}"
