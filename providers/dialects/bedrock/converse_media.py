"""Translates images, documents, audio and videos of a conversation into blocks of Bedrock's Converse.

The service fetches no web addresses: media are sent as data or as a location in S3.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `ImageBlock`, `DocumentBlock`, `AudioBlock` and
`VideoBlock`; the live probes of pydantic-ai 2.68.0 for the error "Citations aren't supported for documents in S3",
November 2026.
"""

import re
from collections.abc import Mapping

from providers.conversation import Audio, Document, Image, InlineData, Media, Turn, UploadedFile, Video
from providers.dialects.bedrock.converse_models import ConverseModel
from providers.dialects.shared.tool_names import DistinctNames
from providers.json_types import JsonObject

_IMAGE_FORMATS: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_DOCUMENT_FORMATS: Mapping[str, str] = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
}
_VIDEO_FORMATS: Mapping[str, str] = {
    "video/x-matroska": "mkv",
    "video/quicktime": "mov",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
_AUDIO_FORMATS = frozenset({"mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a"})
_AUDIO_FORMATS |= {"mpeg", "mpga", "pcm", "webm"}
_FORMAT_OF_ENDING: Mapping[str, str] = {"jpg": "jpeg", "htm": "html", "3gp": "three_gp", "mpg": "mpeg"}
_TEXTUAL = re.compile(r"text/.+|application/([\w.-]+\+)?(json|xml|yaml|x-yaml|javascript|x-ndjson)")
_S3 = re.compile(r"s3://[a-z0-9][.a-z0-9-]{1,61}[a-z0-9](/.*)?")
_MAX_URI_LENGTH = 1024
_FOREIGN_IN_TITLE = re.compile(r"[^a-zA-Z0-9()\[\]-]+")


class ConverseMedia:
    """The media blocks of one request. The service requires a name for each document, and the names must be unique."""

    __slots__ = ("_model", "_titles")

    def __init__(self, model: ConverseModel) -> None:
        self._model = model
        self._titles = DistinctNames(mark=" ")

    def block(self, turn: Turn, part: Image | Document | Audio | Video) -> JsonObject:
        """Return the block of a medium. Raises Refusal."""
        match part:
            case Image():
                return self._image(turn, part)
            case Document():
                return self._document(turn, part)
            case Audio():
                return self._audio(turn, part)
            case Video():
                return self._video(turn, part)

    def _image(self, turn: Turn, part: Image) -> JsonObject:
        form, source = _format_and_source(turn, part.media, _IMAGE_FORMATS, "an image")
        return {"image": {"format": form, "source": source}}

    def _video(self, turn: Turn, part: Video) -> JsonObject:
        if not self._model.video:
            raise turn.refusal("has a video, which this model does not take")
        form, source = _format_and_source(turn, part.media, _VIDEO_FORMATS, "a video")
        return {"video": {"format": form, "source": source}}

    def _audio(self, turn: Turn, part: Audio) -> JsonObject:
        if part.format not in _AUDIO_FORMATS or not part.data:
            raise turn.refusal(f"has audio that is not base64 data of {', '.join(sorted(_AUDIO_FORMATS))}")
        return {"audio": {"format": part.format, "source": {"bytes": part.data}}}

    def _document(self, turn: Turn, part: Document) -> JsonObject:
        media = part.media
        if (
            isinstance(media, InlineData)
            and media.media_type not in _DOCUMENT_FORMATS
            and _TEXTUAL.match(media.media_type)
        ):
            # The service accepts a source of `text` only with citations, and only for half of the models.
            form: str = "txt"
            source: JsonObject = {"bytes": media.data}
        else:
            form, source = _format_and_source(turn, media, _DOCUMENT_FORMATS, "a document")
        block: JsonObject = {"format": form, "name": self._title(part.name or "document"), "source": source}
        if part.context:
            block["context"] = part.context
        if part.citations:
            if not self._model.citations or "s3Location" in source:
                raise turn.refusal(
                    "requests citations of a document, which only Claude supports, and not for documents in S3"
                )
            block["citations"] = {"enabled": True}
        return {"document": block}

    def _title(self, filename: str) -> str:
        """Return a document name that the service accepts: unique, without a file extension, and only with allowed
        characters."""
        base = filename.rpartition(".")[0] or filename
        return self._titles.add(_FOREIGN_IN_TITLE.sub(" ", base).strip()[:190].strip() or "document")


def _format_and_source(turn: Turn, media: Media, formats: Mapping[str, str], medium: str) -> tuple[str, JsonObject]:
    """Return the format and the source of a medium. Raises Refusal."""
    if isinstance(media, InlineData):
        form = formats.get(media.media_type)
        if form is None:
            raise turn.refusal(f"has {medium} of the type '{media.media_type[:80]}', and not of {', '.join(formats)}")
        return form, {"bytes": media.data}
    if isinstance(media, UploadedFile) and not media.id.startswith("s3://"):
        raise turn.refusal(f"has {medium} by the id of an upload, and the service stores no uploads")
    uri = media.id if isinstance(media, UploadedFile) else media.url
    if not uri.startswith("s3://"):
        raise turn.refusal(f"has {medium} by its address, and the service fetches only from S3; send its data")
    if len(uri) > _MAX_URI_LENGTH or not _S3.fullmatch(uri):
        raise turn.refusal(f"has {medium} whose address in S3 is malformed", "invalid_value")
    ending = uri.rpartition(".")[2].lower()
    form = _FORMAT_OF_ENDING.get(ending, ending)
    known = sorted(set(formats.values()))
    if form not in known:
        raise turn.refusal(f"has {medium} in S3 whose name does not end in one of {', '.join(known)}")
    return form, {"s3Location": {"uri": uri}}
