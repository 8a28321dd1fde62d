"""File names and data URLs that clients leave out."""

from providers.adaptation.file_data import data_uri, default_name, fitting_file, media_type, named_type, with_data_url
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped

PDF = "data:application/pdf;base64,JVBERi0="


@looped(
    ("given", "sent"),
    [
        ({"file_data": PDF, "filename": "a.pdf"}, {"file_data": PDF, "filename": "a.pdf"}),
        ({"file_data": PDF}, {"file_data": PDF, "filename": "document.pdf"}),
        ({"file_data": "JVBERi0="}, {"file_data": PDF, "filename": "document.pdf"}),
        (
            {"file_data": "aGk=", "filename": "a.CSV"},
            {"file_data": "data:text/csv;base64,aGk=", "filename": "a.CSV"},
        ),
        (
            {"file_data": "data:application/x-pdf;base64,JVBERi0=", "filename": "a"},
            {"file_data": PDF, "filename": "a"},
        ),
        (
            {"file_data": "data:;base64,JVBERi0=", "filename": "a"},
            {"file_data": PDF, "filename": "a"},
        ),
        (
            {"file_data": "aGk="},
            {"file_data": "data:application/octet-stream;base64,aGk=", "filename": "document"},
        ),
        ({"file_data": "https://a.b/c", "filename": "a"}, {"file_url": "https://a.b/c", "filename": "a"}),
        ({"file_id": "f"}, {"file_id": "f"}),
        ({"file_data": "data:broken", "filename": "a"}, {"file_data": "data:broken", "filename": "a"}),
        ({"file_data": 5}, {"file_data": 5}),
    ],
)
def test_a_file_has_a_name_and_its_data_as_a_data_url(given: JsonObject, sent: JsonObject) -> None:
    fitted = fitting_file(given)
    assert fitted == sent
    assert (fitted is given) == (given == sent)


def test_a_file_without_a_name_gets_a_data_url_alone_where_none_is_needed() -> None:
    bare: JsonObject = {"file_data": PDF}
    assert with_data_url(bare) is bare
    assert with_data_url({"file_data": "JVBERi0="}) == bare


def test_a_name_and_a_media_type_belong_together() -> None:
    assert (default_name("text/plain"), default_name("x/y")) == ("document.txt", "document")
    assert (media_type("data:Text/Plain;base64,AA"), media_type("AA")) == ("text/plain", "")


@looped(
    ("url", "found"),
    [
        ("data:image/PNG;base64,AA==", ("image/png", "AA==")),
        ("DATA:application/pdf;name=a.pdf;base64,AA==", ("application/pdf", "AA==")),
        ("data:image/png,AA", ("", "")),
        ("data:image/png;base64,", ("", "")),
        ("data:image/png;base64;charset=x,AA==", ("", "")),
        ("https://example.org/a,b", ("", "")),
        ("", ("", "")),
    ],
)
def test_a_data_uri_is_its_type_and_its_data(url: str, found: tuple[str, str]) -> None:
    assert data_uri(url) == found


@looped(
    ("holders", "found"),
    [
        ([{"format": "image/PNG"}], "image/png"),
        ([{"format": "png"}, {"mime_type": "image/jpg"}], "image/jpeg"),
        (["image/png", {}], None),
    ],
)
def test_the_type_beside_an_address_is_in_any_field_of_a_client(holders: list[JsonValue], found: str | None) -> None:
    assert named_type(holders) == found
