"""Heads of parts and the Content-Type of forms: accepted ones, their rewritten form, and the reasons for refusals."""

import pytest

from proxy.forms.part_heads import BadHead, PartHead, boundary_of, read_head
from tests.support.looped import looped

HEAD = "Content-Disposition: form-data; "
PLAIN = 'Content-Disposition: form-data; name="f"'
FILE = PLAIN + '; filename="a"'


@looped(
    ("lines", "written"),
    [
        ('content-disposition:form-data;name="f" ; ', PLAIN),
        (HEAD + "name=f", PLAIN),
        ('CONTENT-DISPOSITION: Form-Data; NAME="f"', PLAIN),
        (HEAD + 'name="timestamp_granularities[]"', HEAD + 'name="timestamp_granularities[]"'),
        (FILE + "\r\nContent-Type: audio/x-wav", FILE + "\r\nContent-Type: audio/x-wav"),
        (FILE + "\r\nContent-Type: Audio/OGG;codecs=opus", FILE + "\r\nContent-Type: audio/ogg; codecs=opus"),
        (FILE + '\r\nContent-Type: a/b; x="a b"', FILE + '\r\nContent-Type: a/b; x="a b"'),
        (FILE + "\r\nContent-Transfer-Encoding: binary\r\nContent-Length: 3\r\nX-Own: 1", FILE),
        (PLAIN + "\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: 8bit", PLAIN),
        (PLAIN + "\r\nContent-Type: application/json", PLAIN),
        (PLAIN + '; filename="C:\\music\\a"', FILE),
        (PLAIN + '; filename="/music/a"', FILE),
        (PLAIN + '; filename="%22a%22.wav"', PLAIN + '; filename="%22a%22.wav"'),
        (PLAIN + '; filename="\\"a\\".wav"', PLAIN + '; filename="%22a%22.wav"'),
        (PLAIN + '; filename="a;b"', PLAIN + '; filename="a%3Bb"'),
        (PLAIN + '; filename="ü ö.wav"', PLAIN + '; filename="ü ö.wav"'),
        (PLAIN + "; filename=\"=?utf-8?B?w7w=?=\"; filename*=utf-8''%C3%BC", PLAIN + '; filename="ü"'),
        (PLAIN + "; filename*=UTF-8'en'a%20b", PLAIN + '; filename="a b"'),
        (PLAIN + '; filename="=?utf-8?B?w7w?="', PLAIN + '; filename="=_utf-8?B?w7w?="'),
    ],
)
def test_what_clients_send_is_written_in_one_spelling(lines: str, written: str) -> None:
    head = read_head(lines.encode())
    assert head.written() == f"{written}\r\n\r\n".encode()
    assert read_head(head.written()[:-4]).written() == head.written()


@looped(
    ("lines", "reason"),
    [
        ("", "no Content-Disposition"),
        ("Content-Type: text/plain", "no Content-Disposition"),
        ("Content-Disposition: attachment; name=f", "other than form-data"),
        ("Content-Disposition: ; name=f", "no valid type"),
        (HEAD + "filename=a", "has no name"),
        (HEAD + 'name=""', "has no name"),
        (HEAD + "x=" + "A" * 201 + '; name="model"', "parameter 'x'"),
        (HEAD + 'x="; name=y"; name="model"', "parameter 'x'"),
        (HEAD + "name*=utf-8''model; name=x", "parameter 'name\\*'"),
        (HEAD + "name*0=mo; name*1=del", "parameter 'name\\*0'"),
        (HEAD + 'name ="model"', "not of the form"),
        (HEAD + 'name= "model"', "not of the form"),
        (HEAD + 'name="model', "not of the form"),
        (HEAD + 'name="model"x', "not of the form"),
        (HEAD + 'name="x" name="model"', "not of the form"),
        (HEAD + "name='a b'", "not of the form"),
        (HEAD + "name=x, name=model", "not of the form"),
        (HEAD + 'name="x"; name="model"', "'name' twice"),
        (HEAD + 'name="x"; NAME="model"', "'name' twice"),
        (PLAIN + "; filename=a; filename=b", "'filename' twice"),
        (PLAIN + "\r\n" + PLAIN, "'content-disposition' twice"),
        (PLAIN + "\r\nContent-Type: a/b\r\nContent-Type: a/b", "'content-type' twice"),
        (PLAIN + "\r\n folded: x", "folded"),
        (PLAIN + ";\r\n\tname=model", "control|folded"),
        (PLAIN + "\r\n: nothing", "Name: value"),
        (PLAIN + "\r\nX : blank", "Name: value"),
        (PLAIN + "\r\nno colon", "Name: value"),
        (PLAIN + "\nX: y", "bare line end"),
        (PLAIN + "\rX: y", "bare line end"),
        (PLAIN + "\r\nX: \x00", "control"),
        (PLAIN + "\r\nX: \x85\u2028", "control"),
        (HEAD + 'name="mo\tdel"', "name of more"),
        *[(HEAD + f'name="{odd}"', "name of more") for odd in ("%6dodel", "modél", "a;b", "a=b", " model", "m" * 201)],
        *[(HEAD + f'name="{odd}"', "name of more") for odd in ("mod\\\\el", 'mod\\"el', "=?utf-8?Q?model?=", "mo<del")],
        *[(PLAIN + f'; filename="{odd}"', "is not a file's name") for odd in ("", "..", "a/", "C:\\\\")],
        (PLAIN + "; filename*=utf-8''%0D%0Ax", "is not a file's name"),
        (PLAIN + "; filename*=utf-8''%ff", "UTF-8''name"),
        (PLAIN + "; filename*=iso-8859-1''a", "UTF-8''name"),
        (PLAIN + "; filename*=a", "UTF-8''name"),
        (PLAIN + "\r\nContent-Transfer-Encoding: base64", "Content-Transfer-Encoding"),
        (PLAIN + "\r\nContent-Transfer-Encoding: quoted-printable", "Content-Transfer-Encoding"),
        (PLAIN + "\r\nContent-Encoding: gzip", "Content-Encoding"),
        (PLAIN + "\r\nContent-Type: multipart/mixed; boundary=c", "of the form type"),
        (PLAIN + "\r\nContent-Type: message/rfc822", "of the form type"),
        (PLAIN + "\r\nContent-Type: text", "of the form type"),
        (PLAIN + "\r\nContent-Type: text/plain; charset=utf-16", "charset"),
        (PLAIN + "\r\nContent-Type: text/plain; charset=utf-7", "charset"),
        (FILE + "\r\nContent-Type: a/b; x*=utf-8''c", "cannot be forwarded"),
        (FILE + '\r\nContent-Type: a/b; x="\\""', "cannot be forwarded"),
    ],
)
def test_what_readers_read_differently_is_refused(lines: str, reason: str) -> None:
    with pytest.raises(BadHead, match=reason):
        read_head(lines.encode())


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    with pytest.raises(BadHead, match="UTF-8"):
        read_head(PLAIN.encode() + b'; filename="\xfc.wav"')


def test_a_charset_of_old_clients_is_that_of_its_ascii() -> None:
    lines = PLAIN.encode() + b"\r\nContent-Type: text/plain; charset=ISO-8859-1"
    assert read_head(lines) == PartHead("f", charset="ascii")


@looped(
    ("content_type", "boundary"),
    [
        ("multipart/form-data; boundary=abc", "abc"),
        ('Multipart/Form-Data; charset=utf-8; boundary="a b:c"', "a b:c"),
        ("multipart/form-data; boundary=----WebKit7;", "----WebKit7"),
        ("multipart/form-data;boundary=----=_Part_1.2", "----=_Part_1.2"),
        ("multipart/form-data; boundary=" + "x" * 70, "x" * 70),
        ("multipart/form-data", None),
        ("multipart/mixed; boundary=abc", None),
        ("multipart/form-data, multipart/form-data; boundary=abc", None),
        ("application/json", None),
        ("", None),
    ],
)
def test_only_a_form_has_a_boundary(content_type: str, boundary: str | None) -> None:
    assert boundary_of(content_type) == boundary


@looped(
    ("parameters", "reason"),
    [
        ("xboundary=AA; boundary=BB", "parameter 'xboundary'"),
        ('x="; boundary=AA"; boundary=BB', "parameter 'x'"),
        ("boundary*=utf-8''BB; boundary=AA", "parameter 'boundary\\*'"),
        ("boundary*0=A; boundary*1=B", "parameter 'boundary\\*0'"),
        ("boundary=AA; boundary=BB", "'boundary' twice"),
        ("Boundary=AA; boundary=BB", "'boundary' twice"),
        ("boundary =BB", "not of the form"),
        ("boundary= BB", "not of the form"),
        ('boundary="BB', "not of the form"),
        ("boundary=A B", "not of the form"),
        ('boundary="BB ;boundary=AA "', "does not allow"),
        ('boundary="AA "', "does not allow"),
        ('boundary=""', "does not allow"),
        ('boundary="A\\"A"', "does not allow"),
        ("boundary=" + "x" * 71, "at most 70"),
        ("boundary=a\x01", "not of the form"),
        ("boundary=ü", "not of the form"),
        ("boundary=A; charset=utf-16", "charset"),
    ],
)
def test_a_boundary_that_readers_find_differently_is_refused(parameters: str, reason: str) -> None:
    with pytest.raises(BadHead, match=reason):
        boundary_of(f"multipart/form-data; {parameters}")
