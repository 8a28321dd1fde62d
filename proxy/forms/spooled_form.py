"""Stores a client's form, so that it can be sent several times. Small forms are stored in memory, larger ones in an
unnamed file."""

import asyncio
import codecs
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import IO, Final

from aiohttp import web

from providers.json_types import JsonValue
from proxy.errors import bad_http, too_large
from proxy.forms.parse_multipart import MultipartParser, NotMultipart
from proxy.forms.part_heads import PartHead
from proxy.listener.request_body import BODY_PACE, BODY_WAIT, send_continue

IN_MEMORY: Final = 256 * 1024
"""The maximum bytes of a form in memory, and of one read or write of its file."""

PARSER_CHUNK: Final = 32 * 1024
"""The maximum bytes that the parser of a form gets at a time."""

MAX_FIELD: Final = 64 * 1024
"""The maximum bytes that are read of a field's text."""

MAX_FILE: Final = 1024
"""The maximum bytes that are read of a file."""

MAX_READ: Final = 256 * 1024
"""The maximum bytes that are read of all fields and files of a form. Each field or file may have MAX_FILE bytes beyond
it."""


@dataclass(slots=True, eq=False)
class SpooledForm:
    """A stored form, whose parts have been written anew without the parts of one field.

    `fields` has the texts of all fields; a repeated name has a list. For files and for the fields in `cut`, it has only
    the beginning of the content. `files` has the names of the fields that are files. `read` is the number of bytes of
    all texts. `close` frees the memory and the file. The file has no name, so it also vanishes with the process.
    """

    boundary: str
    fields: dict[str, JsonValue] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    length: int = 0
    read: int = 0
    _written: int = 0
    _memory: bytearray = field(default_factory=bytearray)
    _file: IO[bytes] | None = None

    @property
    def content_type(self) -> str:
        """The Content-Type with which the form is sent on."""
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def in_memory(self) -> int:
        """The bytes of the form that are in memory."""
        return len(self._memory) + self.read

    async def append(self, data: bytes) -> None:
        """Add bytes. The file is written in a thread, because a disk may be slow."""
        self._memory += data
        self.length += len(data)
        if len(self._memory) > IN_MEMORY:
            await asyncio.to_thread(self._flush)

    def _flush(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._file.seek(self._written)
        self._file.write(self._memory)
        self._written += len(self._memory)
        self._memory.clear()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the form's bytes from the beginning, at most IN_MEMORY at a time."""
        at = 0
        while at < self._written:
            data = await asyncio.to_thread(self._read, at)
            at += len(data)
            yield data
        if self._memory:
            yield bytes(self._memory)

    def _read(self, at: int) -> bytes:
        if self._file is None:
            raise RuntimeError("the form is closed")
        self._file.seek(at)
        return self._file.read(min(IN_MEMORY, self._written - at))

    def close(self) -> None:
        """Free the memory and the file."""
        self._memory, self.read = bytearray(), 0
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass(frozen=True, slots=True, eq=False)
class FormUpload:
    """A stored form with one more field at its beginning. It implements `providers.dialect.Upload`."""

    form: SpooledForm
    first: bytes

    @property
    def length(self) -> int:
        return len(self.first) + self.form.length

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self.first
        async for piece in self.form.pieces():
            yield piece


def with_field(form: SpooledForm, name: str, value: str) -> FormUpload:
    """Return the form with one more field at its beginning. `part_heads` must accept the field's name."""
    return FormUpload(form, b"--%b\r\n%b%b\r\n" % (form.boundary.encode(), PartHead(name).written(), value.encode()))


async def read_form(
    http: web.BaseRequest, boundary: str, omitted_field: str, on_received: Callable[[int, int], None]
) -> SpooledForm:
    """Return a client's form without the parts of the field `omitted_field`. The value of that field is in `fields`.

    `on_received` gets the bytes received so far and the number of them in memory; it may raise to refuse the form.
    Raises GatewayError 413, 408 and 400 as `read_body` does, and 400 if the body is not a form.
    """
    limit = http.client_max_size
    if (http.content_length or 0) > limit:
        raise too_large(limit)
    # The client cannot know this boundary, so no content can contain it. All readers find the same parts.
    form = SpooledForm(f"dragoman-{secrets.token_hex(16)}")
    reading = _Reading(form, MultipartParser(boundary), omitted_field)
    started = asyncio.get_running_loop().time()
    deadline = asyncio.timeout(BODY_WAIT)
    received = 0
    try:
        async with deadline:
            await send_continue(http)
            while piece := await http.content.readany():
                received += len(piece)
                if received > limit:
                    raise too_large(limit)
                on_received(received, form.in_memory)
                await reading.add(piece)
                deadline.reschedule(started + BODY_WAIT + received / BODY_PACE)
        await reading.end()
    except BaseException as error:
        form.close()
        if isinstance(error, TimeoutError):
            raise bad_http(f"The form did not arrive within {BODY_WAIT:g} s and 1 s per 100 kB.", 408) from None
        if isinstance(error, NotMultipart):
            raise bad_http(f"The request body {error}.") from None
        if isinstance(error, web.RequestPayloadError):
            raise bad_http("The request body could not be read.") from None
        raise
    return form


@dataclass(slots=True, eq=False)
class _Reading:
    """Writes the parts of a form into storage as they arrive."""

    form: SpooledForm
    parser: MultipartParser
    omitted_field: str
    _head: PartHead | None = None
    _text: codecs.IncrementalDecoder | None = None
    _value: bytearray = field(default_factory=bytearray)
    _limit: int = 0

    async def add(self, data: bytes) -> None:
        # The parser copies the rest of its input after each part.
        for at in range(0, len(data), PARSER_CHUNK):
            await self._feed(data[at : at + PARSER_CHUNK])

    async def _feed(self, data: bytes) -> None:
        for event in self.parser.feed(data):
            if isinstance(event, PartHead):
                await self._end_part()
                await self._begin_part(event)
            elif self._head is not None:
                self._check(self._head, event)
                self._value += event[: max(0, self._limit + 1 - len(self._value))]
                if self._head.name != self.omitted_field:
                    await self.form.append(event)

    async def _begin_part(self, head: PartHead) -> None:
        if head.name == self.omitted_field and head.name in self.form.fields:
            raise NotMultipart(f"has more than one '{head.name}'")
        self._head, self._text = head, None
        if head.filename is None:
            self._text = codecs.getincrementaldecoder(head.charset)()
        self._limit = min(MAX_FILE if self._text is None else MAX_FIELD, max(MAX_FILE, MAX_READ - self.form.read))
        if head.name != self.omitted_field:
            await self.form.append(b"--%b\r\n%b" % (self.form.boundary.encode(), head.written()))

    def _check(self, head: PartHead, data: bytes, *, final: bool = False) -> None:
        """Raise NotMultipart if a field is not valid text, because readers would decode the field differently."""
        try:
            if self._text is not None:
                self._text.decode(data, final)
        except UnicodeDecodeError:
            message = f"has a field '{head.name}' that is not UTF-8 text (a file needs a filename)"
            raise NotMultipart(message) from None

    async def _end_part(self) -> None:
        head = self._head
        if head is None:
            return
        self._check(head, b"", final=True)
        value = self._value[: self._limit].decode("utf-8", "replace")
        if head.name == "_charset_" and value.lower() != "utf-8":
            raise NotMultipart("has a '_charset_' other than UTF-8")
        self._keep(head, value)
        if head.name != self.omitted_field:
            await self.form.append(b"\r\n")
        self.form.read += len(self._value)
        self._value.clear()
        self._head = None

    def _keep(self, head: PartHead, value: str) -> None:
        form, before = self.form, self.form.fields.get(head.name)
        if head.filename is not None:
            form.files.add(head.name)
        elif len(self._value) > self._limit:
            form.cut.add(head.name)
        if before is None:
            form.fields[head.name] = value
        elif isinstance(before, list):
            before.append(value)
        else:
            form.fields[head.name] = [before, value]

    async def end(self) -> None:
        if not self.parser.complete:
            raise NotMultipart("ends before the last boundary of its form")
        await self._end_part()
        await self.form.append(b"--%b--\r\n" % self.form.boundary.encode())
