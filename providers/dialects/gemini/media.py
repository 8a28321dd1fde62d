"""Images, documents, sounds and videos on Gemini's wire, as the data or the address that the client gave.

Nothing is fetched. The vendor demands a type with an address: the client's word, else that of the ending, else the
usual one of its kind.

Sources: `google-genai` 3.4.0 types `Blob`, `FileData`, `FunctionResponsePart`; "File input methods" page of the Gemini
API, "Image understanding", "Document understanding" and "Audio understanding" of Vertex AI; pydantic-ai 2.68.0 on media
in results, November 2026.
"""

import re
from collections.abc import Mapping

from providers.conversation import Address, Audio, Document, Image, InlineData, Media, OtherPart, UploadedFile, Video
from providers.json_types import JsonObject, JsonValue

IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""The vendor's types of images."""

IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
"""Types that Gemini 3 takes within a function's result."""

_ENDINGS: Mapping[str, str] = {
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
_SOUNDS: Mapping[str, str] = {
    **{form: f"audio/{form}" for form in ("wav", "mp3", "aiff", "aac", "ogg", "flac", "m4a", "mp4", "mpeg", "opus")},
    "webm": "audio/webm",
    "pcm": "audio/pcm",
    "pcm16": "audio/pcm",
}
_USUAL: Mapping[type, str] = {Image: "image/jpeg", Document: "application/pdf", Video: "video/mp4"}
_FILE = re.compile(r"files/[A-Za-z0-9_-]{1,64}")
_YOUTUBE = re.compile(r"https://(?:www\.|m\.)?(?:youtube\.com|youtu\.be)/", re.IGNORECASE)
_OWN_PARTS: Mapping[str, str] = {
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
"""The vendor's own parts that a client may send back or send by itself, by either spelling."""


_BESIDE = ("videoMetadata", "thoughtSignature")


GOOGLE_PARTS = "google_parts"
"""The member of a message that lists parts as the vendor wrote them."""

_SENT_BACK = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


class Unsendable(ValueError):
    """Media that the vendor does not take; the message continues "messages[n]"."""


def media_part(part: Image | Document | Video, files: str | None) -> JsonObject:
    """Return the native part; `files` is the address of the service's uploaded files. Raises Unsendable."""
    media = part.media
    if isinstance(media, InlineData):
        if isinstance(part, Image) and media.media_type not in IMAGES:
            allowed = ", ".join(sorted(IMAGES))
            raise Unsendable(f"has an image of the type '{media.media_type[:64]}'; the vendor takes {allowed}")
        return {"inlineData": {"mimeType": media.media_type, "data": media.data}}
    uri = _address_of(media, files)
    named = media.media_type if isinstance(media, Address) else None
    found = named or _by_ending(uri) or (_by_ending(part.name or "") if isinstance(part, Document) else None)
    if found is None and not (isinstance(media, UploadedFile) and files is not None and uri.startswith(files)):
        found = _USUAL[type(part)]
    # The service knows the types of the files that were uploaded to it.
    return {"fileData": {"fileUri": uri} if found is None else {"mimeType": found, "fileUri": uri}}


def sound_part(part: Audio) -> JsonObject:
    """Return the native part of a sound. Raises Unsendable."""
    media_type = _SOUNDS.get(part.format.lower())
    if media_type is None:
        listed = ", ".join(sorted(_SOUNDS))
        raise Unsendable(f"has a sound whose format is none of {listed}")
    return {"inlineData": {"mimeType": media_type, "data": part.data}}


def own_part(part: OtherPart) -> JsonObject | None:
    """Return a part that is the vendor's own already; None for another."""
    name = _OWN_PARTS.get(part.kind)
    held = None if name is None else part.value.get(name, part.value.get(part.kind))
    if name is None or not isinstance(held, dict):
        return None
    beside: JsonObject = {key: value for key, value in part.value.items() if key in _BESIDE}
    return {name: held, **beside}


def parts_to_send_back(message: JsonValue) -> list[JsonObject]:
    """Return the parts of the vendor's own tools that a message of its model lists, without the places that they have
    in the list of a stream."""
    listed = message.get(GOOGLE_PARTS) if isinstance(message, dict) else None
    if not isinstance(listed, list):
        return []
    return [
        {name: value for name, value in part.items() if name != "index"}
        for part in listed
        if isinstance(part, dict) and any(isinstance(part.get(kind), dict) for kind in _SENT_BACK)
    ]


def fits_result(native: JsonObject) -> bool:
    """Return whether a result of Gemini 3 may hold the media."""
    held = native.get("inlineData", native.get("fileData"))
    return isinstance(held, dict) and held.get("mimeType") in IN_RESULTS


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
    raise Unsendable(f"has the file id '{given[:64]}', which is none of the vendor's")


def _by_ending(address: str) -> str | None:
    if _YOUTUBE.match(address):
        return "video/mp4"
    path = address.partition("?")[0].partition("#")[0]
    return _ENDINGS.get(path.rpartition(".")[2].lower())
