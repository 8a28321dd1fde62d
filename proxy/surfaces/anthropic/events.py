"""Writes the events of the Messages API's streams as bytes. Each event names its type twice, like Anthropic's own
events.

Source: `anthropic` 2.12.0 type `RawMessageStreamEvent`, November 2026.
"""

from providers.completion import NativeForm
from providers.dialects.shared.read_json import parse_json
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.write_sse import ascii_json

DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
TEXT = DELTA + b'{"type":"text_delta","text":'
THINKING = DELTA + b'{"type":"thinking_delta","thinking":'
ARGUMENTS = DELTA + b'{"type":"input_json_delta","partial_json":'
END = b"}}\n\n"
"""The bytes after the value of an event that begins with one of the four constants above."""

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
"""An event that may occur anywhere in a stream, also before `message_start` (docs.claude.com "Streaming messages",
"Ping events")."""

MESSAGE_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


def event(kind: str, fields: JsonObject) -> bytes:
    """Return an event."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), ascii_json({"type": kind, **fields}))


def block_start(index: int, block: JsonObject) -> bytes:
    """Return the event that begins a block."""
    return event("content_block_start", {"index": index, "content_block": block})


def block_delta(index: int, delta: JsonObject) -> bytes:
    """Return the event of a delta of a block."""
    return event("content_block_delta", {"index": index, "delta": delta})


def block_stop(index: int) -> bytes:
    """Return the event that ends a block."""
    return b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % index


def vendors_start(data: bytes, model: str) -> bytes:
    """Return the vendor's event that begins a message, with the gateway's name of the model."""
    opened: JsonValue = parse_json(data)
    message = opened.get("message") if isinstance(opened, dict) else None
    if not isinstance(opened, dict) or not isinstance(message, dict):
        return vendors_event("message_start", data)
    return event("message_start", {**opened, "message": {**message, "model": model}})


def vendors_event(name: str, data: bytes) -> bytes:
    """Return an event as the vendor sent it, with a line for each line of its data."""
    if b"\n" in data:
        data = b"\ndata: ".join(data.splitlines())
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def around_vendors(form: NativeForm) -> tuple[bytes, bytes]:
    """Return the bytes that `vendors_event` writes before and after a literal of an event of this form."""
    return b"event: %b\ndata: %b" % (form.name.encode(), form.before), form.after + b"\n\n"
