"""Media in Gemini's API."""

import pytest

from providers.conversation import Address, Audio, Document, Image, InlineData, OtherPart, UploadedFile, Video
from providers.dialects.gemini.media import Unsendable, audio_part, fits_result, google_part, media_part
from providers.json_types import JsonObject
from tests.providers.dialects.gemini.kit import TARGET, contents_of
from tests.providers.dialects.kit import user
from tests.support.looped import looped

FILES = f"{TARGET.base_url}/files/"


@looped(
    ("part", "native"),
    [
        (Image(Address("https://example.org/a.png?x=1#y")), ("image/png", "https://example.org/a.png?x=1#y")),
        (Image(Address("https://example.org/picture")), ("image/jpeg", "https://example.org/picture")),
        (Image(Address("https://example.org/picture", "image/webp")), ("image/webp", "https://example.org/picture")),
        (Image(Address("https://[broken/a.HEIC")), ("image/heic", "https://[broken/a.HEIC")),
        (Image(Address("gs://bucket/a")), ("image/jpeg", "gs://bucket/a")),
        (Image(Address("gs://bucket/a.webp")), ("image/webp", "gs://bucket/a.webp")),
        (Image(Address("https://example.org/b.JPEG?size=9")), ("image/jpeg", "https://example.org/b.JPEG?size=9")),
        (Document(Address("https://example.org/paper")), ("application/pdf", "https://example.org/paper")),
        (Document(Address("gs://bucket/notes.txt")), ("text/plain", "gs://bucket/notes.txt")),
        (Document(Address("https://example.org/get"), "a.csv"), ("text/csv", "https://example.org/get")),
        (Video(Address("gs://bucket/clip.mov")), ("video/mov", "gs://bucket/clip.mov")),
        (Document(Address("https://youtu.be/x")), ("video/mp4", "https://youtu.be/x")),
        (Video(Address("https://www.youtube.com/watch?v=x")), ("video/mp4", "https://www.youtube.com/watch?v=x")),
        (Document(UploadedFile("gs://bucket/b.pdf")), ("application/pdf", "gs://bucket/b.pdf")),
    ],
)
def test_media_at_an_address_have_the_type_said_or_shown_or_usual(
    part: Image | Document | Video, native: tuple[str, str]
) -> None:
    assert media_part(part, FILES) == {"fileData": {"mimeType": native[0], "fileUri": native[1]}}


def test_the_type_of_an_uploaded_file_is_known_to_the_service() -> None:
    whole = f"{FILES}abc-1"
    for given in ("files/abc-1", whole):
        assert media_part(Document(UploadedFile(given)), FILES) == {"fileData": {"fileUri": whole}}
    named = media_part(Document(UploadedFile("files/abc-1"), "a.pdf"), FILES)
    assert named == {"fileData": {"mimeType": "application/pdf", "fileUri": whole}}


@looped("kind", ["application/pdf", "text/plain", "text/x-python", "video/mp4", "image/png"])
def test_data_of_any_type_can_be_a_document(kind: str) -> None:
    native = {"inlineData": {"mimeType": kind, "data": "AA=="}}
    assert media_part(Document(InlineData(kind, "AA==")), None) == native


@looped(
    ("part", "reason"),
    [
        (Image(InlineData("image/gif", "AA==")), "image/gif"),
        (Image(Address("http://example.org/a.png")), "neither https:// nor gs://"),
        (Image(Address("s3://bucket/a.png")), "neither https:// nor gs://"),
        (Document(UploadedFile("file-abc")), "'file-abc', which is not an id of the vendor"),
        (Document(UploadedFile("files/../x")), "not an id of the vendor"),
    ],
)
def test_what_the_vendor_does_not_take_is_named(part: Image | Document, reason: str) -> None:
    with pytest.raises(Unsendable, match=reason):
        media_part(part, FILES)


def test_vertex_has_no_uploaded_files() -> None:
    with pytest.raises(Unsendable, match="not an id of the vendor"):
        media_part(Document(UploadedFile("files/abc-1")), None)


def test_sounds_have_their_types() -> None:
    assert audio_part(Audio("AA==", "MP3")) == {"inlineData": {"mimeType": "audio/mp3", "data": "AA=="}}
    assert audio_part(Audio("AA==", "pcm16")) == {"inlineData": {"mimeType": "audio/pcm", "data": "AA=="}}
    with pytest.raises(Unsendable, match="not one of aac"):
        audio_part(Audio("AA==", "midi"))


def test_only_some_types_fit_into_a_result() -> None:
    def fits(kind: str) -> bool:
        return fits_result({"inlineData": {"mimeType": kind, "data": "AA=="}})

    assert [fits(kind) for kind in ("image/png", "application/pdf", "text/plain", "image/heic", "audio/wav")] == [
        *(True, True, True),
        *(False, False),
    ]
    assert fits_result({"fileData": {"mimeType": "image/png", "fileUri": "gs://a/b"}})
    assert not fits_result({"executableCode": {}})


def test_the_vendors_own_parts_are_known_by_either_spelling() -> None:
    data: JsonObject = {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"}
    given: JsonObject = {"type": "file_data", "file_data": data, "videoMetadata": {"fps": 1}}
    assert google_part(OtherPart("file_data", given)) == {"fileData": data, "videoMetadata": {"fps": 1}}
    assert google_part(OtherPart("fileData", {"type": "fileData", "fileData": 3})) is None
    assert google_part(OtherPart("hologram", {"type": "hologram"})) is None


@looped(
    ("part", "native"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://example.org/a", "format": "image/png"}},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a"}},
        ),
        (
            {"type": "image_url", "image_url": "https://example.org/a", "mime_type": "image/JPG"},
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a"}},
        ),
        (
            {"type": "file", "file": {"file_data": "https://example.org/a", "mime_type": "text/html"}},
            {"fileData": {"mimeType": "text/html", "fileUri": "https://example.org/a"}},
        ),
        (
            {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA=="}},
            {"inlineData": {"mimeType": "video/mp4", "data": "AA=="}},
        ),
        ({"type": "file", "file": {"file_id": "files/abc-1"}}, {"fileData": {"fileUri": f"{FILES}abc-1"}}),
        (
            {"type": "video_url", "video_url": {"url": "https://youtu.be/x", "format": "mp4"}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}},
        ),
    ],
)
def test_a_client_says_what_is_at_an_address_in_its_part(part: JsonObject, native: JsonObject) -> None:
    assert contents_of(user([part])) == [{"role": "user", "parts": [native]}]
