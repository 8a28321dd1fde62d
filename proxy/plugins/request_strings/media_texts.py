"""The texts within media. A data URI or bare base64 may contain a text file, which vendors pass to the model.

Only strings that are base64 throughout are media. A text file is shown decoded, and encoded again if it is changed.
Sources: RFC 2397; the types that OpenAI, Anthropic and Gemini document for files, images, audio and video, November
2026.
"""

import re
from base64 import b64encode
from binascii import Error, a2b_base64
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

from proxy.plugins.request_strings.known_words import words

MEDIA_KEYS: Final = words(
    """
    audio audio_url data document_url file file_data file_url image image_data image_url images input_reference mask
    url video video_url
    """
)
"""Keys under which a data URI is media."""

MIN_BASE64: Final = 64
"""The number of characters below which base64 is shown to guards encoded as well as decoded. No image or audio file is
that short."""

_LINES: Final = rf"(?:[SIGNS]{{{MIN_BASE64 - 4},}}+[\r\n]*+)++[SIGNS]*+={{0,2}}[\r\n]*"
_ENCODED: Final = re.compile(_LINES.replace("SIGNS", "A-Za-z0-9+/"))
"""Base64 that only programs write: without spaces, in lines of 60 characters or more (PEM has 64, MIME 76). Other
strings that can be read as base64, such as words joined by spaces or hyphens, are also shown encoded."""

_ENCODED_IN_URI: Final = re.compile(_LINES.replace("SIGNS", "A-Za-z0-9+/_-"))
"""Base64 after a header that declares it. The alphabet of URLs is allowed too."""

_SCHEME: Final = "data:"
_OFFICE: Final = "vnd.openxmlformats-officedocument"
_MEDIA: Final = frozenset(
    [f"image/{each}" for each in sorted(words("png jpeg jpg gif webp bmp tiff heic heif avif x-icon"))]
    + [
        f"audio/{each}"
        for each in sorted(words("wav x-wav wave mp3 mpeg mp4 m4a x-m4a ogg opus flac webm aac pcm l16"))
    ]
    + [f"video/{each}" for each in sorted(words("mp4 webm mpeg mov quicktime avi x-msvideo x-flv 3gpp wmv mpg mpegs"))]
    + ["application/pdf", "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"]
    + [f"application/{_OFFICE}.wordprocessingml.document", f"application/{_OFFICE}.spreadsheetml.sheet"]
    + [f"application/{_OFFICE}.presentationml.presentation", "application/zip"]
)
"""Types of files that are not text, unless the whole file is valid text."""

_MAIN_TYPES: Final = ("image/", "audio/", "video/")

_OTHER: Final = frozenset(
    [
        f"text/{each}"
        for each in sorted(words("plain html css csv markdown xml javascript x-python tab-separated-values"))
    ]
    + [f"application/{each}" for each in sorted(words("json xml csv yaml x-yaml javascript octet-stream x-ndjson rtf"))]
    + ["image/svg+xml", ""]
)
"""Further known types of media. They are not shown to guards, because they carry no content."""

_BLANKS: Final = re.compile(r"[\t\n\r ]")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_BOMS: Final = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks and their encodings, longer marks first."""
_BEGINNINGS: Final = (
    *(b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*"),
    *(b"OggS", b"ID3", b"fLaC", b"\xff\xfb", b"\x1a\x45\xdf\xa3", b"\x1f\x8b"),
)
"""The first bytes of media files, to recognise them without a type."""

_CHARSET: Final = re.compile(r";charset=(?:utf-8|us-ascii|iso-8859-1|windows-1252)")
_BASE64: Final = ";base64"
_FALLBACK_ENCODING: Final = "latin-1"
"""The fallback encoding: any bytes are valid text in it."""

_LOOSE_END: Final = re.compile(r"; *(base64) *$", re.IGNORECASE)
"""The end of a base64 header with spaces, which parsers of WHATWG `data:` URLs also accept."""

_PAYLOAD: Final = re.compile(r"[A-Za-z0-9+/]{64,}={0,2}")


class NotReadable(ValueError):
    """The media cannot be read the way vendors read it."""


def is_data_uri(value: str) -> bool:
    """Return whether a value of one of MEDIA_KEYS is a data URI."""
    return value[:5].lower() == _SCHEME


def is_encoded(value: str) -> bool:
    """Return whether a text can only be base64. No client or model writes text of this form by hand."""
    return _ENCODED.fullmatch(value) is not None


def begins_as_media(data: bytes) -> bool:
    """Return whether a file without a type is a media file."""
    return data.startswith(_BEGINNINGS)


def is_sound_uri(value: str) -> bool:
    """Return whether a value is the data URI of an audio file. Its end may be missing, because form fields are read up
    to a limit only."""
    head, _, payload = value.partition(",")
    kind = head.lower().removeprefix(_SCHEME).removesuffix(_BASE64)
    return kind in _MEDIA and f"{_SCHEME}{kind}{_BASE64}" == head.lower() and _PAYLOAD.fullmatch(payload) is not None


def with_uri(value: str, change: Callable[[str], str]) -> str:
    """Return a data URI with each of its shown texts changed. Raises NotReadable."""
    head, comma, payload = value.partition(",")
    if not comma:
        return change(value)
    head = _LOOSE_END.sub(r";\1", head)
    lower = head[len(_SCHEME) :].lower()
    encoded = lower.endswith(_BASE64)
    kind = _CHARSET.sub("", lower.removesuffix(_BASE64), count=1)
    if kind not in _MEDIA and kind not in _OTHER:
        head = change(head)
    if encoded:
        found = _text_in(_decoded(payload), kind)
        return f"{head},{_with_text(payload, found, _ENCODED_IN_URI.fullmatch(payload) is not None, change)}"
    shown = unquote(payload)
    return f"{head},{payload if (new := change(shown)) == shown else quote(new)}"


def with_base64(payload: str, kind: str, change: Callable[[str], str]) -> str:
    """Return bare base64 with its text changed, if it encodes a text. `kind` is its media type, possibly without
    parameters. Unless the string can only be base64, its characters are changed as well, because a vendor may read
    them as text. Raises NotReadable, also if both are changed."""
    found = _text_in(_decoded(payload), kind)
    guessed = found is not None and found[1] == _FALLBACK_ENCODING
    return _with_text(payload, found, not guessed and is_encoded(payload), change)


def _with_text(payload: str, found: tuple[str, str] | None, plain: bool, change: Callable[[str], str]) -> str:
    left = payload if not payload or (plain and len(payload) >= MIN_BASE64) else change(payload)
    if found is None or not found[0]:
        return left
    text, codec = found
    new = change(text)
    if new == text:
        return left
    made = _encoded(new, codec)
    if left != payload and _changed_part(payload, left) in made:
        raise NotReadable("has words that would be changed in both its original and its decoded form")
    return made


def _encoded(text: str, codec: str) -> str:
    try:
        return b64encode(text.encode(codec)).decode()
    except UnicodeEncodeError:
        return b64encode(text.encode()).decode()


def _changed_part(old: str, new: str) -> str:
    """Return the part of `old` between the prefix and the suffix that it shares with `new`."""
    start = _common_prefix(old, new)
    end = _common_prefix(old[start:][::-1], new[start:][::-1])
    return old[start : len(old) - end]


def _common_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )


def _decoded(payload: str) -> bytes:
    text = _BLANKS.sub("", unquote(payload) if "%" in payload else payload).translate(_URL_SAFE).rstrip("=")
    try:
        return a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except (Error, ValueError):
        raise NotReadable("is not base64") from None


def _is_media(kind: str) -> bool:
    kind = kind.partition(";")[0]
    return kind in _MEDIA or (kind.startswith(_MAIN_TYPES) and kind not in _OTHER)


def _text_in(data: bytes, kind: str) -> tuple[str, str] | None:
    """Return the text of a file and its encoding; `None` if the file is not text. A file whose type is not a media
    type is text, unless it begins like a media file."""
    media, binary = _is_media(kind) or begins_as_media(data), b"\0" in data
    if not binary:
        try:
            return data.decode(), "utf-8"
        except UnicodeDecodeError:
            pass
    if media:
        return None
    for beginning, codec in _BOMS.items():
        if data.startswith(beginning):
            with suppress(UnicodeDecodeError):
                return data.decode(codec), codec
    # In encodings of two or four bytes per character, the other bytes of ASCII letters and digits are zero.
    return data.replace(b"\0", b"").decode(_FALLBACK_ENCODING), _FALLBACK_ENCODING
