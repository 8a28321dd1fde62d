"""Converts files in messages to the form of OpenAI's APIs, which require a name, and data as a data URL with its media
type.

Clients leave out the name, send bare base64, or send an address instead of data. A missing media type is derived from
the file name's extension, else from the first bytes.

Sources: OpenAI's "File inputs" page; openai/openai-agents-python pull request 1513 ("Missing required parameter:
'messages[1].content[1].file.file_id'", if a name is missing), strands-agents/harness-sdk pull request 3576 ("Invalid
'input[3].output[0].file_data'", if the data are bare base64), November 2026.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from providers.json_types import JsonObject, JsonValue

_TYPE_NAMES: Final = ("mime_type", "media_type", "mimeType", "format")
"""Fields in which clients give the media type of an address. `format` is the field of LiteLLM's clients."""

PDF: Final = "application/pdf"
_ADDRESS: Final = re.compile(r"(?i)(?:https?|gs|s3)://")
_DATA_URL: Final = re.compile(r"(?i)data:([^;,]{0,255})((?:;[^,;]{0,255}){0,8}),")
_UNKNOWN_TYPES: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_BY_ENDING: Final[Mapping[str, str]] = {
    "pdf": PDF,
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "xml": "application/xml",
    "docx": f"{_OFFICE}wordprocessingml.document",
    "xlsx": f"{_OFFICE}spreadsheetml.sheet",
    "pptx": f"{_OFFICE}presentationml.presentation",
}
_BY_TYPE: Final[Mapping[str, str]] = {kind: ending for ending, kind in _BY_ENDING.items()}
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "application/x-pdf": PDF,
    "text/pdf": PDF,
    "text/x-markdown": "text/markdown",
}
_PDF_BEGINS: Final = "JVBERi"
"""The base64 of the first characters of each PDF."""


def fitting_file(file: JsonObject) -> JsonObject:
    """Return a file of a message with a name and its data as a data URL, or with its address as `file_url`; the same
    object if nothing changes. A file with neither data nor an address is unchanged, and the vendor decides whether to
    accept it."""
    data = file.get("file_data")
    if not isinstance(data, str) or not data:
        return file
    if _ADDRESS.match(data):
        rest = {name: value for name, value in file.items() if name != "file_data"}
        return rest if rest.get("file_url") else {**rest, "file_url": data}
    name = file.get("filename")
    url = _data_url(data, name if isinstance(name, str) else "")
    if isinstance(name, str) and name:
        return file if url is data else {**file, "file_data": url}
    return {**file, "filename": default_name(media_type(url)), "file_data": url}


def default_name(kind: str) -> str:
    """Return a default name for a file of a media type. OpenAI requires a name; its error is "Missing required
    parameter: 'input[0].content[0].filename'."."""
    ending = _BY_TYPE.get(kind)
    return "document" if ending is None else f"document.{ending}"


def with_data_url(file: JsonObject) -> JsonObject:
    """Return a file of a message with its data as a data URL, without adding a name; the same object if nothing
    changes."""
    fitted = fitting_file(file)
    if fitted is file or "filename" in file or "filename" not in fitted:
        return fitted
    if fitted["file_data"] == file["file_data"]:
        return file
    return {name: value for name, value in fitted.items() if name != "filename"}


def media_type(data: str) -> str:
    """Return the media type of a data URL, empty if it has none."""
    found = _DATA_URL.match(data)
    return found[1].lower() if found is not None else ""


def _data_url(data: str, name: str) -> str:
    found = _DATA_URL.match(data)
    if found is None and data[:5].lower() == "data:":
        return data
    stated_type = found[1].lower() if found is not None else ""
    kind = _OTHER_NAMES.get(stated_type, stated_type)
    content = data[found.end() :] if found is not None else data
    if kind in _UNKNOWN_TYPES:
        kind = _BY_ENDING.get(name.rpartition(".")[2].lower(), "") or (PDF if content.startswith(_PDF_BEGINS) else kind)
    if kind == stated_type and found is not None:
        return data
    form = found[2] if found is not None else ";base64"
    return f"data:{kind or 'application/octet-stream'}{form},{content}"


def data_uri(url: str) -> tuple[str, str]:
    """Return the media type and the base64 data of a data URI; two empty strings for any other text."""
    head, _, data = url.partition(",")
    scheme, _, rest = head.partition(":")
    media, *parameters = rest.split(";")
    good = scheme.lower() == "data" and data and parameters[-1:] == ["base64"]
    return (media.lower(), data) if good else ("", "")


def named_type(holders: Iterable[JsonValue]) -> str | None:
    """Return the media type that a client names beside an address; `None` if it names no type."""
    for holder in holders:
        for name in _TYPE_NAMES if isinstance(holder, dict) else ():
            stated_type = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(stated_type, str) and "/" in stated_type:
                stated_type = stated_type.lower()
                return "image/jpeg" if stated_type == "image/jpg" else stated_type
    return None
