"""Media on Converse."""

import pytest

from providers.conversation import Address, Audio, Document, Image, InlineData, Media, Turn, UploadedFile, Video
from providers.dialects.bedrock.converse_media import ConverseMedia
from providers.dialects.bedrock.converse_models import UNKNOWN_MODEL, converse_model
from providers.failure import Refusal
from providers.json_types import JsonObject
from tests.support.looped import looped

TURN = Turn("user", ())
CLAUDE, NOVA = converse_model("claude-haiku-4-5"), converse_model("amazon.nova-pro-v1:0")
PDF = InlineData("application/pdf", "JVBERi0=")


def test_what_is_in_s3_is_named_by_its_place() -> None:
    media = ConverseMedia(NOVA)
    place: JsonObject = {"s3Location": {"uri": "s3://bucket/a.JPG"}}
    assert media.block(TURN, Image(Address("s3://bucket/a.JPG"))) == {"image": {"format": "jpeg", "source": place}}
    assert media.block(TURN, Image(UploadedFile("s3://bucket/a.JPG")))["image"] == {"format": "jpeg", "source": place}
    video = media.block(TURN, Video(Address("s3://bucket/b.3gp")))
    assert video == {"video": {"format": "three_gp", "source": {"s3Location": {"uri": "s3://bucket/b.3gp"}}}}
    report = media.block(TURN, Document(Address("s3://bucket/q.docx"), "q.docx"))
    source: JsonObject = {"s3Location": {"uri": "s3://bucket/q.docx"}}
    assert report == {"document": {"format": "docx", "name": "q", "source": source}}


@looped(
    ("media", "reason"),
    [
        (Address("https://example.com/a.png"), "fetches only from S3"),
        (Address("gs://bucket/a.png"), "fetches only from S3"),
        (Address("s3://B/a.png"), "malformed"),
        (Address("s3://bucket/" + "a" * 1100 + ".png"), "malformed"),
        (Address("s3://bucket/a"), "does not end in one of"),
        (UploadedFile("file-1"), "the service stores no uploads"),
        (InlineData("image/tiff", "AA=="), "of the type 'image/tiff'"),
    ],
)
def test_an_image_that_the_service_cannot_have_is_refused_with_the_reason(media: Media, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        ConverseMedia(UNKNOWN_MODEL).block(TURN, Image(media))


def test_a_document_says_its_context_and_that_it_is_to_be_cited() -> None:
    block = ConverseMedia(CLAUDE).block(TURN, Document(PDF, "a.pdf", "Old.", citations=True))["document"]
    assert block == {
        "format": "pdf",
        "name": "a",
        "source": {"bytes": "JVBERi0="},
        "context": "Old.",
        "citations": {"enabled": True},
    }
    for model, media in ((NOVA, PDF), (CLAUDE, Address("s3://bucket/a.pdf"))):
        with pytest.raises(Refusal, match="citations"):
            ConverseMedia(model).block(TURN, Document(media, citations=True))


def test_a_text_of_a_type_without_a_format_goes_as_a_plain_one() -> None:
    media = ConverseMedia(UNKNOWN_MODEL)
    block = media.block(TURN, Document(InlineData("application/json", "eyJhIjoxfQ=="), "a.json"))
    assert block == {"document": {"format": "txt", "name": "a", "source": {"bytes": "eyJhIjoxfQ=="}}}
    with pytest.raises(Refusal, match="application/zip"):
        media.block(TURN, Document(InlineData("application/zip", "AA==")))


def test_no_two_documents_have_one_name() -> None:
    media = ConverseMedia(UNKNOWN_MODEL)
    names = [media.block(TURN, Document(PDF, "a" * 300)) for _ in range(3)]
    found = [block["document"]["name"] for block in names if isinstance(block["document"], dict)]
    assert len(set(map(str, found))) == 3
    assert all(len(str(name)) <= 200 for name in found)


def test_videos_are_for_nova_alone() -> None:
    video = Video(InlineData("video/mp4", "AA=="))
    assert ConverseMedia(NOVA).block(TURN, video) == {"video": {"format": "mp4", "source": {"bytes": "AA=="}}}
    with pytest.raises(Refusal, match="a video, which this model does not take"):
        ConverseMedia(CLAUDE).block(TURN, video)


def test_sounds_go_as_their_data() -> None:
    assert ConverseMedia(UNKNOWN_MODEL).block(TURN, Audio("UklG", "wav")) == {
        "audio": {"format": "wav", "source": {"bytes": "UklG"}}
    }
    with pytest.raises(Refusal, match="has audio"):
        ConverseMedia(UNKNOWN_MODEL).block(TURN, Audio("UklG", "midi"))
