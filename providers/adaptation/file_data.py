"""Fits files in messages to OpenAI's APIs: data as a data URL with its media type, and a name.

Clients leave out the name, send bare base64, or give an address in the place of the data. The media type of data
without one is read from the name's ending, else from the first bytes.

Sources: OpenAI's "File inputs" page; openai/openai-agents-python pull request 1513 ("Missing required parameter:
'messages[1].content[1].file.file_id'", for a missing name), strands-agents/harness-sdk pull request 3576 ("Invalid
'input[3].output[0].file_data'", for bare base64), November 2026.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from providers.json_types import JsonObject, JsonValue

_TYPE_NAMES: Final = ("mime_type", "media_type", "mimeType", "format")
"""Fields in which clients name the type of media at an address; `format` is LiteLLM's."""

PDF: Final = "application/pdf"
_ADDRESS: Final = re.compile(r"(?i)(?:https?|gs|s3)://")
_DATA_URL: Final = re.compile(r"(?i)data:([^;,]{0,255})((?:;[^,;]{0,255}){0,8}),")
_UNSAID: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
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
    """Return a file of a message with its data as a data URL under a name, or its address as `file_url`; the same
    object if nothing changes. What is neither data nor an address stays, for the vendor to answer for."""
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
    """Return a name for a file of a media type: "Missing required parameter: 'input[0].content[0].filename'."."""
    ending = _BY_TYPE.get(kind)
    return "document" if ending is None else f"document.{ending}"


def with_data_url(file: JsonObject) -> JsonObject:
    """Return a file whose data is a data URL, or whose address is `file_url`, without a name if it has none; the same
    object if nothing changes."""
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
    said = found[1].lower() if found is not None else ""
    kind = _OTHER_NAMES.get(said, said)
    content = data[found.end() :] if found is not None else data
    if kind in _UNSAID:
        kind = _BY_ENDING.get(name.rpartition(".")[2].lower(), "") or (PDF if content.startswith(_PDF_BEGINS) else kind)
    if kind == said and found is not None:
        return data
    form = found[2] if found is not None else ";base64"
    return f"data:{kind or 'application/octet-stream'}{form},{content}"


def data_uri(url: str) -> tuple[str, str]:
    """Return media type and base64 data of a data URI; two empty strings for anything else."""
    head, _, data = url.partition(",")
    scheme, _, rest = head.partition(":")
    media, *parameters = rest.split(";")
    good = scheme.lower() == "data" and data and parameters[-1:] == ["base64"]
    return (media.lower(), data) if good else ("", "")


def named_type(holders: Iterable[JsonValue]) -> str | None:
    """Return the media type that a client names beside an address."""
    for holder in holders:
        for name in _TYPE_NAMES if isinstance(holder, dict) else ():
            said = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(said, str) and "/" in said:
                said = said.lower()
                return "image/jpeg" if said == "image/jpg" else said
    return None
