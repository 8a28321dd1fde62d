"""Forms for readers: a corpus of part heads that readers interpret differently, and random forms that combine such
heads with good ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class SentForm:
    """A form as a client sends it."""

    content_type: str
    body: bytes


NASTY: Final[tuple[bytes, ...]] = (
    b"",
    b"Content-Type: text/plain",
    b'Content-Disposition: form-data; x="%b"; name="model"' % (b"A" * 201),
    b'Content-Disposition: form-data; name ="model"',
    b'Content-Disposition: form-data; name= "model"',
    b'Content-Disposition: form-data; x="; name=y"; name="model"',
    b'Content-Disposition: form-data; name="x"; name="model"',
    b'Content-Disposition: form-data; name="x"; NAME="model"',
    b'Content-Disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="model"',
    b"Content-Disposition: form-data; name=x; name*=utf-8''model",
    b"Content-Disposition: form-data; name*0=mo; name*1=del",
    b'Content-Disposition: form-data; name="=?utf-8?Q?model?="',
    b'Content-Disposition: form-data; name="%6dodel"',
    b'Content-Disposition: form-data; name="mod\\el"',
    b'Content-Disposition: form-data; name="x\\"; name="model"',
    b'Content-Disposition: form-data; name="x\x00"; y="model"',
    b'Content-Disposition: form-data; name="x\n"; name="model"',
    b'Content-Disposition: form-data;\r\n name="model"',
    b'Content-Disposition: form-data; name="x"\r\n ; name="model"',
    b'Content-Disposition: form-data; name="x"\nContent-Disposition: form-data; name="model"',
    b'Content-Disposition : form-data; name="model"',
    b': x\r\nContent-Disposition: form-data; name="model"',
    b'Content-Disposition: attachment; name="model"',
    b'Content-Disposition: form-data, form-data; name="model"',
    b'Content-Disposition: form-data; name="model"; filename="x"; name="y"',
    b'Content-Disposition: form-data; name="x"; filename="a"; filename*=utf-8\'\'b',
    b"Content-Disposition: form-data; name=\"x\"; filename*=utf-8''a%22%3B%20name%3Dmodel",
    b'Content-Disposition: form-data; name="x"; filename="a; name=model; b"',
    b'Content-Disposition: form-data; name="x"; filename="a\\"; name=\\"model"',
    b'Content-Disposition: form-data; name="x"; filename="..\\..\\a"',
    b'Content-Disposition: form-data; name="x"; filename=""',
    b'Content-Disposition: form-data; name="x"; filename="=?utf-8?B?Ij09Ijs/?="',
    b'Content-Disposition: form-data; name="x"; filename="\xc3\xbc\xe2\x80\xa8"',
    b'Content-Disposition: form-data; name="x"; filename="\xff"',
    b'Content-Disposition: form-data; name="x"\r\nContent-Transfer-Encoding: base64',
    b'Content-Disposition: form-data; name="x"\r\nContent-Transfer-Encoding: quoted-printable',
    b'Content-Disposition: form-data; name="x"\r\nContent-Encoding: deflate',
    b'Content-Disposition: form-data; name="x"\r\nContent-Length: 2',
    b'Content-Disposition: form-data; name="x"\r\nContent-Type: application/octet-stream',
    b'Content-Disposition: form-data; name="x"\r\nContent-Type: text/plain; charset=utf-16',
    b'Content-Disposition: form-data; name="x"\r\nContent-Type: multipart/mixed; boundary=b',
    b'Content-Disposition: form-data; name="x"; filename="a"\r\nContent-Type: message/rfc822',
    b'Content-Disposition: form-data; name="_charset_"',
)

_GOOD: Final[tuple[bytes, ...]] = (
    b'Content-Disposition: form-data; name="%b"',
    b"content-disposition: form-data; name=%b",
    b'Content-Disposition: form-data; name="%b"; filename="a.wav"\r\nContent-Type: audio/wav',
    b'Content-Disposition: form-data; name="%b"; filename="a b;c \xc3\xbc.wav"',
    b'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="%b"',
    b'Content-Disposition: form-data; name="%b"\r\nContent-Transfer-Encoding: 8bit\r\nContent-Length: 7',
    b"Content-Disposition: form-data; name=%b; filename=a; filename*=utf-8''%%C3%%BC%%2522",
)
_NAMES: Final = (b"file", b"prompt", b"x", b"include[]", b"a.b", b"A-1", b"k:v")
_CONTENTS: Final[tuple[bytes, ...]] = (
    *(
        b"",
        b"hi",
        b"\r\n",
        b"\n",
        b"\r",
        b"a\r\n\r\nb",
        b"--",
        b"\n--AA\n",
        b"\n--BB--\n",
        b"x\r\n-",
        b"=3D\r\n=",
        b"aGk=",
    ),
    b'\n--BB\nContent-Disposition: form-data; name="model"\n\nsecret\n--BB--\n',
    b'--BB\r\nContent-Disposition: form-data; name="model"\r\n\r\nsecret\r\n--BB--\r\n',
    *("größer".encode(), b"\x00\x0b\x0c\x1c\x85", b"\xff\xfe", b"\xe2\x80\xa8", b"From me", b".\r\n.", b" folded: x"),
)
_BOUNDARIES: Final = ("AA", "BB", "----WebKitFormBoundary7MA4", "'()+_,-./:=?", "=_1.2", "b" * 70)
_TYPES: Final = (
    *("boundary={}", 'boundary="{}"', "charset=utf-8; boundary={}", "Boundary={};", "boundary={} "),
    *(
        "xboundary=BB; boundary={}",
        "boundary={}; boundary=BB",
        "boundary ={}",
        "boundary*=utf-8''{}",
        'x="; boundary=BB";{}',
    ),
)


def corpus() -> Iterator[SentForm]:
    """Yield a form for each bad head: alone, before a good part, and after one."""
    good = b'Content-Disposition: form-data; name="prompt"'
    for head in NASTY:
        for heads in ((head,), (head, good), (good, head)):
            yield SentForm("multipart/form-data; boundary=BB", _body(b"BB", [(each, b"value") for each in heads]))


def random_forms(seed: int, count: int) -> Iterator[SentForm]:
    """Yield random forms, about a half of which are good ones."""
    random = Random(seed)
    for _ in range(count):
        boundary = random.choice(_BOUNDARIES)
        spelt = random.choice(_TYPES[:5] if random.random() < 0.85 else _TYPES).format(boundary)
        parts = [
            (_head(random), b"".join(random.choices(_CONTENTS, k=random.randint(0, 3))))
            for _ in range(random.randint(0, 4))
        ]
        body = _body(boundary.encode(), parts)
        if random.random() < 0.2:
            body = (
                random.choice((b"preamble\r\n", b"\r\n", b"--BB\r\n"))
                + body
                + random.choice((b"", b"after", b"--AA--"))
            )
        if random.random() < 0.1:
            body = body.replace(b"\r\n", random.choice((b"\n", b"\r", b" \r\n", b"\t\r\n")), random.randint(1, 5))
        yield SentForm(f"multipart/form-data; {spelt}", body)


def _head(random: Random) -> bytes:
    if random.random() < 0.1:
        return random.choice(NASTY)
    head = random.choice(_GOOD) % random.choice(_NAMES)
    if random.random() < 0.1:
        at = random.randrange(len(head))
        return (
            head[:at]
            + random.choice((b" ", b'"', b";", b"\\", b"=", b"%", b"\n", b"\x00", b"", b"*", b"'"))
            + head[at + 1 :]
        )
    return head


def _body(boundary: bytes, parts: list[tuple[bytes, bytes]]) -> bytes:
    lines = [b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary, head, content) for head, content in parts]
    return b"".join(lines) + b"--%b--\r\n" % boundary
