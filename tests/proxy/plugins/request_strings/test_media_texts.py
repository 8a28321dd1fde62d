"""The texts within data URIs and bare base64."""

from base64 import b64encode, urlsafe_b64encode

import pytest

from proxy.plugins.request_strings.media_texts import NotReadable, is_data_uri, is_sound_uri, with_base64, with_uri
from tests.support.looped import looped

SAID = "it is 123-45-6789 and it takes more than 64 characters of base64"
SHORT = "it is 123-45-6789"
BYTES = bytes(range(256)) * 2
WORDS = "these words and their blanks are base64 to lenient readers and say swordfish"
PDF = b"%PDF-1.7\n\xe2\xe3" + BYTES


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{encoded(data)}"


def shown(value: str) -> list[str]:
    seen: list[str] = []

    def see(text: str) -> str:
        seen.append(text)
        return text

    assert with_uri(value, see) == value
    return seen


SHOWN_BYTES = "a character for each byte"

MEDIA = {
    "a picture": uri("image/png", BYTES),
    "in capitals": f"DATA:IMAGE/PNG;BASE64,{encoded(BYTES)}",
    "a PDF": uri("application/pdf", PDF),
    "a sound": uri("audio/wav", BYTES),
    "a film": uri("video/mp4", BYTES),
    "an archive": uri("application/octet-stream", b"PK\x03\x04" + BYTES),
    "lines of 76": f"data:image/png;base64,{encoded(BYTES)[:76]}\r\n{encoded(BYTES)[76:]}",
    "the alphabet of URLs": f"data:image/png;base64,{urlsafe_b64encode(BYTES).decode()}",
    "without padding": f"data:image/png;base64,{encoded(BYTES).rstrip('=')}",
    "nothing": "data:text/plain;base64,",
}

TEXTS = {
    "a text": (uri("text/plain", SAID.encode()), [SAID]),
    "with a charset": (uri("text/plain;charset=utf-8", SAID.encode()), [SAID]),
    "a table": (uri("application/csv", f"é,{SAID}".encode("cp1252")), [f"é,{SAID}"]),
    "UTF-16": (uri("text/plain", SAID.encode("utf-16")), [SAID]),
    "UTF-16 without a mark": (uri("text/plain", SAID.encode("utf-16-le")), [SAID]),
    "UTF-32 with a mark": (uri("text/plain", SAID.encode("utf-32")), [SAID]),
    "UTF-32": (uri("application/octet-stream", b"\xff" + SAID.encode("utf-32-be")), [f"\xff{SAID}"]),
    "JSON": (uri("application/json", SAID.encode()), [SAID]),
    "a drawing of XML": (uri("image/svg+xml", SAID.encode()), [SAID]),
    "a text that says it is a picture": (uri("image/png", SAID.encode()), [SAID]),
    "a text that says it is a PDF": (uri("application/pdf", SAID.encode()), [SAID]),
    "no type": (uri("", SAID.encode()), [SAID]),
    "no base64": (f"data:text/plain,{SAID}", [SAID]),
    "escapes": ("data:,it%20is%20123%2D45%2D6789", [SHORT]),
    "escaped base64": (f"data:text/plain;base64,{encoded(SAID.encode())}%3D", [f"{encoded(SAID.encode())}%3D", SAID]),
    "short": (uri("text/plain", SHORT.encode()), [encoded(SHORT.encode()), SHORT]),
    "words with blanks": (
        f"data:image/png;base64,{WORDS}",
        [WORDS],
    ),
    "a type that is none": (uri(SAID, PDF), [f"data:{SAID};base64"]),
    "a parameter": (f"data:image/png;x={SAID};base64,{encoded(BYTES)}", [f"data:image/png;x={SAID};base64"]),
    "a short number": ("data:image/png;base64,4111111111111111", ["4111111111111111"]),
    "no comma": (f"data: {SAID}", [f"data: {SAID}"]),
}


def test_blanks_at_the_end_of_a_head_hide_no_base64() -> None:
    seen: list[str] = []

    def see(text: str) -> str:
        seen.append(text)
        return text

    assert with_uri(f"data:text/plain; base64 ,{encoded(SAID.encode())}", see) == uri("text/plain", SAID.encode())
    assert seen == [SAID]


@looped("value", MEDIA.values(), ids=MEDIA.keys())
def test_media_are_not_shown(value: str) -> None:
    assert is_data_uri(value)
    assert shown(value) == []


@looped(("value", "texts"), TEXTS.values(), ids=TEXTS.keys())
def test_texts_are_shown_whatever_they_say_they_are(value: str, texts: list[str]) -> None:
    assert shown(value) == texts


@looped(
    ("value", "made"),
    [
        (uri("text/plain", SAID.encode()), uri("text/plain", b"*")),
        (uri("text/csv", b"\xe9"), uri("text/csv", b"*")),
        (f"data:text/plain,{SAID}", "data:text/plain,%2A"),
        (uri(SAID, PDF), f"*,{encoded(PDF)}"),
    ],
)
def test_a_changed_text_is_encoded_anew(value: str, made: str) -> None:
    assert with_uri(value, lambda text: "*") == made


def test_a_text_that_its_encoding_cannot_say_is_utf_8() -> None:
    assert with_uri(uri("text/csv", b"\xe9"), lambda text: "€") == uri("text/csv", "€".encode())


@looped(
    "value",
    [
        "data:image/png;base64,my number is 123-45-6789!",
        f"data:image/png;base64,{encoded(BYTES)}====MTIz",
        f"data:text/plain;base64,{encoded(BYTES)}!",
    ],
)
def test_what_readers_would_read_in_different_ways_is_not_read(value: str) -> None:
    with pytest.raises(NotReadable):
        with_uri(value, str)


@looped(
    ("value", "kind", "texts"),
    [
        (encoded(BYTES), "audio/wav", []),
        (encoded(SAID.encode()), "application/pdf", [SAID]),
        (encoded(SHORT.encode()), "", [encoded(SHORT.encode()), SHORT]),
        ("swordfish123", "audio/wav", ["swordfish123"]),
        (encoded(PDF), "", []),
        (f"{encoded(PDF)[:76]}\n{encoded(PDF)[76:]}", "", []),
        (WORDS, "audio/wav", [WORDS]),
        ("-swordfish-".join(["a" * 20] * 5), "audio/wav", ["-swordfish-".join(["a" * 20] * 5)]),
        (f"{'s' * 59}swordfish", "", [f"{'s' * 59}swordfish", SHOWN_BYTES]),
    ],
)
def test_bare_base64_is_shown_as_it_is_unless_it_can_be_nothing_else(value: str, kind: str, texts: list[str]) -> None:
    seen: list[str] = []

    def see(text: str) -> str:
        seen.append(text)
        return text

    assert with_base64(value, kind, see) == value
    assert [text if text.isascii() else SHOWN_BYTES for text in seen] == texts


def test_bare_base64_is_changed_in_one_form() -> None:
    assert with_base64(encoded(BYTES), "audio/wav", lambda text: "*") == encoded(BYTES)
    assert with_base64(encoded(SAID.encode()), "application/pdf", str.upper) == encoded(SAID.upper().encode())
    assert with_base64(encoded(SHORT.encode()), "", str.upper) == encoded(SHORT.upper().encode())
    assert with_base64("swordfish123", "audio/wav", lambda text: text.replace("sword", "*")) == "*fish123"
    both = encoded(SHORT.encode())
    with pytest.raises(NotReadable):
        with_base64(both, "", lambda text: text.replace("it is 1", "it is 2").replace("LTY3", "*"))


@looped(
    ("value", "sound"),
    [
        (uri("audio/wav", BYTES), True),
        (uri("audio/wav", BYTES)[:-3], True),
        (f"data: {SAID}", False),
        (f"{uri('audio/wav', BYTES)} {SAID}", False),
        (f"data:audio/{SAID};base64,{encoded(BYTES)}", False),
        ("audio/wav", False),
    ],
)
def test_a_sound_may_be_cut_and_holds_nothing_else(value: str, *, sound: bool) -> None:
    assert is_sound_uri(value) is sound
