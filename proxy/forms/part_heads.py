"""Read a form's Content-Type and the heads of its parts by one strict grammar, and write the heads anew.

Readers of forms disagree about any looser syntax: blanks before "=", repeated parameters, the contents of quotes. So
this module refuses syntax outside its grammar. The heads are written in the one spelling that all readers understand
alike. Sources: RFC 2046, 5.1.1; RFC 7578, 4 and 5; RFC 8187, 3.2; WHATWG HTML, 4.10.21.8.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

MAX_NAME: Final = 200
"""The maximum characters of a field's name."""

_WORD: Final = r"[0-9A-Za-z!#$%&'*+.^_`|~-]+"
# Clients omit the quotes that some characters of their boundaries need. Accepting this is safe, because no vendor sees
# the client's boundary.
_BARE: Final = r"[0-9A-Za-z!#$%&'()*+,./:=?^_`|~-]+"
_PARAMETER = re.compile(rf'[ \t]*;(?:[ \t]*({_WORD})=(?:"((?:[^"\\]|\\.)*)"|({_BARE})))?[ \t]*(?=;|$)')
_LINE = re.compile(rf"({_WORD}):(.*)")
_KIND = re.compile(rf"({_WORD}/{_WORD}|{_WORD})(?=[ \t]*(?:;|$))")
_ESCAPED = re.compile(r'\\(["\\])')
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_NAME = re.compile(rf"[0-9A-Za-z_.\[\]$:@/+#~ -]{{1,{MAX_NAME}}}")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_ENCODED = re.compile(r"utf-8'[0-9A-Za-z-]*'((?:[0-9A-Za-z!#$&+.^_`|~-]|%[0-9A-Fa-f]{2})*)", re.IGNORECASE)
_VALUE = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{0,100}")

_UTF8: Final = frozenset({"utf-8", "utf8"})
_ASCII_WITHIN: Final = frozenset({"us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"})
"""Charsets that encode ASCII as UTF-8 does. Older Java clients name them for any content."""

_UNENCODED: Final = frozenset({"7bit", "8bit", "binary"})
_HARMLESS_IN_FILES: Final = str.maketrans({'"': "%22", ";": "%3B"})
"""The double quote is escaped as browsers escape it. The semicolon is escaped because aiohttp cuts heads at it even
within quotes."""


class BadHead(ValueError):
    """A head that is refused. The message is a predicate, such as "has no name"."""


@dataclass(frozen=True, slots=True)
class PartHead:
    """A part's head. `filename` is `None` for a field that is not a file. The text of such a field is in `charset`,
    and is sent on as UTF-8. `content_type` is a file's type in its new spelling; `None` if it has none."""

    name: str
    filename: str | None = None
    content_type: str | None = None
    charset: str = "utf-8"

    def written(self) -> bytes:
        """Return the head as bytes, followed by the empty line."""
        lines = f'Content-Disposition: form-data; name="{self.name}"'
        if self.filename is not None:
            lines += f'; filename="{self.filename}"'
        if self.content_type is not None:
            lines += f"\r\nContent-Type: {self.content_type}"
        return f"{lines}\r\n\r\n".encode()


def boundary_of(content_type: str) -> str | None:
    """Return the boundary in a Content-Type; `None` if it is not a form. Raises BadHead if a form's Content-Type is
    ambiguous."""
    if content_type.partition(";")[0].strip().lower() != "multipart/form-data":
        return None
    _, parameters = _split(content_type, "its Content-Type")
    if unknown := parameters.keys() - {"boundary", "charset"}:
        raise BadHead(f"has the parameter '{min(unknown)[:40]}' in its Content-Type")
    if parameters.get("charset", "utf-8").lower() not in _UTF8 | {"us-ascii"}:
        raise BadHead("has a charset other than UTF-8 in its Content-Type")
    boundary = parameters.get("boundary")
    if boundary is not None and not _BOUNDARY.fullmatch(boundary):
        raise BadHead("has a boundary that RFC 2046 does not allow: at most 70 characters, no blank at the end")
    return boundary


def read_head(lines: bytes) -> PartHead:
    """Return the head of a part from its header lines. Raises BadHead."""
    headers = _headers(lines)
    for name, allowed in (("content-transfer-encoding", _UNENCODED), ("content-encoding", ("identity",))):
        if headers.get(name, "binary" if allowed is _UNENCODED else "identity").lower() not in allowed:
            raise BadHead(f"has a {name.title()} that changes the content; send the content unencoded")
    disposition = headers.get("content-disposition")
    if disposition is None:
        raise BadHead("has no Content-Disposition")
    kind, parameters = _split(disposition, "its Content-Disposition")
    if kind != "form-data":
        raise BadHead("has a Content-Disposition other than form-data")
    if unknown := parameters.keys() - {"name", "filename", "filename*"}:
        raise BadHead(f"has the parameter '{min(unknown)[:40]}' in its Content-Disposition")
    name, filename = _name(parameters), _filename(parameters)
    written, charset = _content_type(headers.get("content-type"))
    if filename is None:
        return PartHead(name, charset=charset)
    return PartHead(name, filename, written)


def _headers(lines: bytes) -> Mapping[str, str]:
    try:
        text = lines.decode()
    except UnicodeDecodeError:
        raise BadHead("has header lines that are not UTF-8") from None
    headers: dict[str, str] = {}
    for line in text.split("\r\n") if text else ():
        if _CONTROL.search(line):
            raise BadHead("has a control character or a bare line end in its header lines")
        found = _LINE.fullmatch(line)
        if found is None:
            raise BadHead("has a header line that is not of the form 'Name: value', or a folded one")
        name = found[1].lower()
        if name in headers:
            raise BadHead(f"has the header '{name[:40]}' twice")
        headers[name] = found[2].strip(" \t")
    return headers


def _split(value: str, where: str) -> tuple[str, Mapping[str, str]]:
    """Return a header's kind, in lower case, and its parameters by their names in lower case. Raises BadHead."""
    kind = _KIND.match(value)
    if kind is None:
        raise BadHead(f"has no valid type in {where}")
    at, parameters = kind.end(), dict[str, str]()
    while at < len(value):
        found = _PARAMETER.match(value, at)
        if found is None:
            raise BadHead(f'has parameters in {where} that are not of the form ; name="value"')
        at = found.end()
        if found[1] is None:
            continue
        name = found[1].lower()
        if name in parameters:
            raise BadHead(f"has the parameter '{name[:40]}' twice in {where}")
        parameters[name] = found[3] if found[2] is None else _ESCAPED.sub(r"\1", found[2])
    return kind[1].lower(), parameters


def _name(parameters: Mapping[str, str]) -> str:
    name = parameters.get("name", "")
    if not name:
        raise BadHead("has no name")
    if not _NAME.fullmatch(name) or name.strip() != name:
        raise BadHead(f"has a name of more than {MAX_NAME} characters or others than letters, digits, and _.-[]$:@/+#~")
    return name


def _filename(parameters: Mapping[str, str]) -> str | None:
    """Return the name of the file without its folders: some readers remove the folders, and no server should use
    them."""
    given = parameters.get("filename")
    if (encoded := parameters.get("filename*")) is not None:
        found = _ENCODED.fullmatch(encoded)
        given = None if found is None else _decoded(found[1])
        if given is None:
            raise BadHead("has a filename* that is not of the form UTF-8''name")
    if given is None:
        return None
    base = re.split(r"[/\\]", given)[-1].strip(" \t")
    if base in ("", ".", "..") or _CONTROL.search(base):
        raise BadHead("has a filename that is not a file's name")
    # Some readers decode a text that begins with "=?", as in the headers of mail.
    return base.translate(_HARMLESS_IN_FILES).replace("=?", "=_")


def _decoded(escaped: str) -> str | None:
    try:
        return unquote_to_bytes(escaped).decode()
    except UnicodeDecodeError:
        return None


def _content_type(value: str | None) -> tuple[str | None, str]:
    """Return a part's Content-Type in its new spelling, and the charset in which a text is decoded. Raises BadHead."""
    if not value:
        return None, "utf-8"
    kind, parameters = _split(value, "its Content-Type")
    if "/" not in kind or kind.startswith(("multipart/", "message/")):
        raise BadHead("has a Content-Type that is multipart, or not of the form type/subtype")
    charset = parameters.get("charset", "utf-8").lower()
    if charset not in _UTF8 | _ASCII_WITHIN:
        raise BadHead("has a charset other than UTF-8 in its Content-Type")
    if not all("*" not in name and _VALUE.fullmatch(each) for name, each in parameters.items()):
        raise BadHead("has parameters in its Content-Type that cannot be forwarded")
    rest = "".join([f"; {name}={_quoted_if_needed(each)}" for name, each in parameters.items() if name != "boundary"])
    return kind + rest, "utf-8" if charset in _UTF8 else "ascii"


_is_word: Final[Callable[[str], object]] = re.compile(_WORD).fullmatch


def _quoted_if_needed(value: str) -> str:
    return value if _is_word(value) else f'"{value}"'
