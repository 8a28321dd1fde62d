"""Translates images, documents, audio and videos into Gemini's form, as the data or the address that the client gave.

Nothing is fetched. The vendor requires a media type beside an address: the client's type, else the type for the file
extension, else the usual type of the kind.

Sources: `google-genai` 3.4.0 types `Blob`, `FileData`, `FunctionResponsePart`; "File input methods" page of the Gemini
API, "Image understanding", "Document understanding" and "Audio understanding" of Vertex AI; pydantic-ai 2.68.0 on media
in results, November 2026.
"""

import re
from collections.abc import Mapping

from providers.conversation import Address, Audio, Document, Image, InlineData, Media, OtherPart, UploadedFile, Video
from providers.json_types import JsonObject, JsonValue

IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""The image types that the vendor accepts."""

RESULT_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
"""The media types that Gemini 3 accepts within a function's result."""

_TYPE_OF_EXTENSION: Mapping[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "xml": "text/xml",
    "json": "application/json",
    "mp3": "audio/mp3",
    "wav": "audio/wav",
    "m4a": "audio/m4a",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "mpg": "video/mpg",
    "mov": "video/mov",
    "avi": "video/avi",
    "flv": "video/x-flv",
    "webm": "video/webm",
    "wmv": "video/wmv",
    "3gp": "video/3gpp",
}
_AUDIO_TYPES: Mapping[str, str] = {
    **{form: f"audio/{form}" for form in ("wav", "mp3", "aiff", "aac", "ogg", "flac", "m4a", "mp4", "mpeg", "opus")},
    "webm": "audio/webm",
    "pcm": "audio/pcm",
    "pcm16": "audio/pcm",
}
_USUAL_TYPE: Mapping[type, str] = {Image: "image/jpeg", Document: "application/pdf", Video: "video/mp4"}
_FILE = re.compile(r"files/[A-Za-z0-9_-]{1,64}")
_YOUTUBE = re.compile(r"https://(?:www\.|m\.)?(?:youtube\.com|youtu\.be)/", re.IGNORECASE)
_GOOGLE_PARTS: Mapping[str, str] = {
    "inlineData": "inlineData",
    "inline_data": "inlineData",
    "fileData": "fileData",
    "file_data": "fileData",
    "executableCode": "executableCode",
    "executable_code": "executableCode",
    "codeExecutionResult": "codeExecutionResult",
    "code_execution_result": "codeExecutionResult",
    "toolCall": "toolCall",
    "tool_call": "toolCall",
    "toolResponse": "toolResponse",
    "tool_response": "toolResponse",
}
"""The vendor's own parts that a client may send, by both spellings of their names."""


_FIELDS_BESIDE = ("videoMetadata", "thoughtSignature")


GOOGLE_PARTS = "google_parts"
"""The field of a message that lists the parts of Google's own tools unchanged."""

_SENT_BACK = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


class Unsendable(ValueError):
    """Media that the vendor does not accept. The exception's message continues a sentence that begins with
    "messages[n]"."""


def media_part(part: Image | Document | Video, files: str | None) -> JsonObject:
    """Return the native part. `files` is the address of the service's uploaded files. Raises Unsendable."""
    media = part.media
    if isinstance(media, InlineData):
        if isinstance(part, Image) and media.media_type not in IMAGES:
            allowed = ", ".join(sorted(IMAGES))
            raise Unsendable(f"has an image of the type '{media.media_type[:64]}'; the vendor takes {allowed}")
        return {"inlineData": {"mimeType": media.media_type, "data": media.data}}
    uri = _address_of(media, files)
    named = media.media_type if isinstance(media, Address) else None
    media_type = (
        named
        or _type_by_extension(uri)
        or (_type_by_extension(part.name or "") if isinstance(part, Document) else None)
    )
    if media_type is None and not (isinstance(media, UploadedFile) and files is not None and uri.startswith(files)):
        media_type = _USUAL_TYPE[type(part)]
    # The service itself knows the type of a file that was uploaded to it.
    return {"fileData": {"fileUri": uri} if media_type is None else {"mimeType": media_type, "fileUri": uri}}


def audio_part(part: Audio) -> JsonObject:
    """Return the native part of audio. Raises Unsendable."""
    media_type = _AUDIO_TYPES.get(part.format.lower())
    if media_type is None:
        formats = ", ".join(sorted(_AUDIO_TYPES))
        raise Unsendable(f"has audio whose format is not one of {formats}")
    return {"inlineData": {"mimeType": media_type, "data": part.data}}


def google_part(part: OtherPart) -> JsonObject | None:
    """Return a part that is in the vendor's own form already; `None` for other parts."""
    name = _GOOGLE_PARTS.get(part.kind)
    content = None if name is None else part.value.get(name, part.value.get(part.kind))
    if name is None or not isinstance(content, dict):
        return None
    further: JsonObject = {key: value for key, value in part.value.items() if key in _FIELDS_BESIDE}
    return {name: content, **further}


def parts_to_send_back(message: JsonValue) -> list[JsonObject]:
    """Return the parts of the vendor's own tools that an assistant message lists, without the list indices that
    streaming adds."""
    parts = message.get(GOOGLE_PARTS) if isinstance(message, dict) else None
    if not isinstance(parts, list):
        return []
    return [
        {name: value for name, value in part.items() if name != "index"}
        for part in parts
        if isinstance(part, dict) and any(isinstance(part.get(kind), dict) for kind in _SENT_BACK)
    ]


def fits_result(native: JsonObject) -> bool:
    """Return whether a result of Gemini 3 may hold the media."""
    media = native.get("inlineData", native.get("fileData"))
    return isinstance(media, dict) and media.get("mimeType") in RESULT_TYPES


def _address_of(media: Media, files: str | None) -> str:
    if isinstance(media, Address):
        if media.url.partition("://")[0].lower() not in ("https", "gs"):
            raise Unsendable("has media at an address that is neither https:// nor gs://")
        return media.url
    given = media.id if isinstance(media, UploadedFile) else ""
    if given.startswith(("https://", "gs://")):
        return given
    if files is not None and _FILE.fullmatch(given):
        return files + given.removeprefix("files/")
    raise Unsendable(f"has the file id '{given[:64]}', which is not an id of the vendor")


def _type_by_extension(address: str) -> str | None:
    if _YOUTUBE.match(address):
        return "video/mp4"
    path = address.partition("?")[0].partition("#")[0]
    return _TYPE_OF_EXTENSION.get(path.rpartition(".")[2].lower())
