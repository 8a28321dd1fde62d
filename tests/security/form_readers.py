"""Readers of forms: the gateway's, with the form that it forwards, and the readers of the frameworks that engines
use."""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from itertools import pairwise
from typing import cast

import orjson
from aiohttp import BodyPartReader, MultipartReader, StreamReader
from aiohttp.base_protocol import BaseProtocol

from proxy.forms.parse_multipart import MultipartParser
from proxy.forms.part_heads import PartHead, boundary_of
from proxy.forms.spooled_form import read_form, with_field
from tests.proxy.kit.arriving_forms import arriving
from tests.security.form_corpus import SentForm

MODEL = "the-vendor-s"


@dataclass(frozen=True, slots=True)
class Part:
    """A part as a reader returns it. `filename` is `None` for a field that is not a file."""

    name: str | None
    filename: str | None
    content: bytes


Reader = Callable[[SentForm], list[Part]]
"""A function that returns the parts of a form, or raises ValueError for a form that it rejects."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The parts that the gateway has read, the texts that it judges, and the form that it forwards."""

    parts: list[Part]
    texts: dict[str, list[str]]
    sent: SentForm


async def judge(form: SentForm, cuts: list[int]) -> Judged:
    """Return the gateway's result for a form that arrives in chunks. Raise GatewayError and BadHead."""
    boundary = boundary_of(form.content_type)
    assert boundary is not None
    marks = [0, *sorted(min(cut, len(form.body)) for cut in cuts), len(form.body)]
    pieces = [form.body[start:end] for start, end in pairwise(marks) if start < end]
    stored = await read_form(arriving(pieces), boundary, "model", lambda _received, _in_memory: None)
    upload = with_field(stored, "model", MODEL)
    body = b"".join([piece async for piece in upload.pieces()])
    stored.close()
    assert upload.length == len(body)
    texts = {name: value if isinstance(value, list) else [value] for name, value in stored.fields.items()}
    parts = [Part("model", None, MODEL.encode()), *[part for part in _own(form, boundary) if part.name != "model"]]
    return Judged(parts, cast(dict[str, list[str]], texts), SentForm(stored.content_type, body))


def _own(form: SentForm, boundary: str) -> list[Part]:
    found: list[Part] = []
    for event in MultipartParser(boundary).feed(form.body):
        if isinstance(event, PartHead):
            found.append(Part(event.name, event.filename, b""))
        else:
            last = found.pop()
            found.append(Part(last.name, last.filename, last.content + event))
    return found


async def read_by_aiohttp(form: SentForm) -> list[Part]:
    """Read a form as `Request.multipart()` of aiohttp does."""
    content = StreamReader(BaseProtocol(asyncio.get_running_loop()), 2**20)
    content.feed_data(form.body)
    content.feed_eof()
    reader, found = MultipartReader({"Content-Type": form.content_type}, content), list[Part]()
    while (part := await reader.next()) is not None:
        assert isinstance(part, BodyPartReader)
        found.append(Part(part.name, part.filename, bytes(await part.read(decode=True))))
    return found


def read_by_email(form: SentForm) -> list[Part]:
    """Read a form by the standard library's parser of mail, as cgi's successors do."""
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: %b\r\n\r\n%b" % (form.content_type.encode(), form.body)
    )
    found: list[Part] = []
    for part in message.iter_parts():
        parameters = part["content-disposition"].params
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found.append(Part(parameters.get("name"), parameters.get("filename"), content))
    return found


def read_by_process(exchange: Callable[[str], str], form: SentForm) -> list[Part]:
    """Read a form by a process that returns one line for each line. Raise ValueError with its error."""
    order = {"type": form.content_type, "body": base64.b64encode(form.body).decode()}
    answer = orjson.loads(exchange(orjson.dumps(order).decode()))
    if "error" in answer:
        raise ValueError(answer["error"])
    return [Part(each["name"], each["filename"], base64.b64decode(each["content"])) for each in answer["parts"]]
