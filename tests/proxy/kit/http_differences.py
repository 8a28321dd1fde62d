"""The bytes that the gateway's HTTP client and aiohttp's read differently, and why the gateway's reading is right."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.proxy.kit.byte_vendor import Ending
from tests.proxy.kit.call_outcomes import Outcome

_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_INTERIM: Final = re.compile(rb"\A(?:\r\n)*HTTP/1\.[01] 1(?!01)[0-9][0-9]")
_CHUNK_HEAD: Final = re.compile(rb"([0-9a-fA-F]+)(?:;[\t -~\x80-\xff]*)?\r\n")
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*([0-9]+)[ \t]*\r\n", re.IGNORECASE)
_BODILESS: Final = re.compile(rb"\AHTTP/1\.[01] (?:204|304)")
_TRAILERS: Final = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)*\r\n")


@dataclass(frozen=True, slots=True)
class Read:
    """A vendor's bytes and the end of its connection: the final head with its end, and the bytes behind it."""

    method: str
    ending: Ending
    head: bytes
    rest: bytes


def read(answer: bytes, ending: Ending, method: str) -> Read:
    """Cut a response behind its head, and leave out interim responses before it."""
    start = 0
    while (found := _HEAD_END.search(answer, start)) is not None:
        if _INTERIM.match(answer[start : found.end()]) is None:
            return Read(method, ending, answer[start : found.end()], answer[found.end() :])
        start = found.end()
    return Read(method, ending, answer[start:], b"")


def chunks_end(rest: bytes) -> int | None:
    """Return the end of the chunks at the start of `rest`, as RFC 9112, 7.1 defines them; 0 if they are incomplete,
    `None` if they are invalid.
    """
    at = 0
    while (found := _CHUNK_HEAD.match(rest, at)) is not None:
        size = int(found[1], 16)
        at = found.end()
        if not size:
            trailers = _TRAILERS.match(rest, at)
            return None if trailers is None else trailers.end()
        if size >= len(rest) - at:
            return 0
        if rest[at + size : at + size + 2] != b"\r\n"[: len(rest) - at - size]:
            return None
        at += size + 2
    return 0 if at >= len(rest) else None


def well_chunked(answer: Read) -> bool:
    """Return whether the bytes behind the head are valid chunks, as far as they go."""
    return chunks_end(answer.rest) is not None


def has_excess(answer: Read) -> bool:
    """Return whether there are bytes behind one complete response."""
    if answer.method == "HEAD" or _BODILESS.match(answer.head) or not answer.rest:
        return bool(answer.rest)
    if (length := _LENGTH.search(answer.head)) is not None:
        return len(answer.rest) > int(length[1])
    return 0 < (chunks_end(answer.rest) or 0) < len(answer.rest)


@dataclass(frozen=True, slots=True)
class Difference:
    """Responses for which `holds` is true may end as `ours` here and as `theirs` there (regular expressions of
    `Outcome.told`).
    """

    why: str
    holds: Callable[[Read], bool]
    ours: str
    theirs: str

    def explains(self, answer: Read, ours: Outcome, theirs: Outcome) -> bool:
        """Return whether this difference explains the two outcomes."""
        told, other = re.fullmatch(self.ours, ours.told()), re.fullmatch(self.theirs, theirs.told())
        return told is not None and other is not None and self.holds(answer)


def in_head(pattern: bytes) -> Callable[[Read], bool]:
    """Return a test whether the final head contains the pattern."""
    compiled = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda answer: compiled.search(answer.head) is not None


def in_rest(pattern: bytes) -> Callable[[Read], bool]:
    """Return a test whether the bytes behind the head contain the pattern."""
    compiled = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda answer: compiled.search(answer.rest) is not None


GOOD = r"(?:[0-9]+ )?(?:ok|waits|truncated|unanswered)(?: reused)?(?: mixed up)?"
REFUSED = r"malformed|waits|unanswered"
BROKEN = r"(?:[0-9]+ truncated)|malformed"

DIFFERENCES = (
    Difference(
        "A gateway refuses folded lines or joins them (RFC 9112, 5.2); refusing cannot be read two ways.",
        in_head(rb"\n[ \t]"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "A line feed alone may be taken for a line's end (RFC 9112, 2.2); whoever takes it reads other fields than"
        " whoever does not.",
        in_head(rb"(?<!\r)\n"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "Control characters in a value are invalid and may be kept (RFC 9110, 5.5); no vendor sends them.",
        in_head(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "A space before the colon has to be removed by a proxy (RFC 9112, 5.1) and is how framing is hidden.",
        in_head(rb"\n[^:\n]*[ \t](?::|\Z)"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "Only `chunked` was asked for (RFC 9112, 6.1 and 7.4): another coding would be passed on undecoded, and"
        " `chunked` in a form of its own is read as no coding at all.",
        in_head(rb"transfer-encoding[ \t]*:(?![ \t]*chunked[ \t]*\r(?:(?!\ntransfer-encoding).)*\Z)"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "There are no such versions of HTTP/1 (RFC 9112, 2.3 and 4).",
        in_head(rb"\A(?:\r\n)*HTTP/(?!1\.[01] )"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "A status below 100 is none (RFC 9110, 15).",
        in_head(rb"\A(?:\r\n)*HTTP/1\.[01] 0"),
        REFUSED,
        r"[0-9]* ?(?:ok|waits|truncated)(?: reused)?",
    ),
    Difference(
        "A value of 8 KB is harmless behind whatever name.",
        in_head(rb"[^\n]{8191}"),
        GOOD,
        REFUSED,
    ),
    Difference(
        "A head has a limit as a whole, not only its lines: 64 KB are more than any vendor sends.",
        in_head(rb"\A.{65536}"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "204 and 304 end with their head, whatever it says of a body (RFC 9112, 6.3); the connection is closed.",
        in_head(rb"\AHTTP/1\.[01] (?:204|304)"),
        r"(?:204|304) ok",
        r"malformed",
    ),
    Difference(
        "What comes behind a whole answer does not belong to it (RFC 9112, 6.3 and 9.2): the answer counts and the"
        " connection is closed.",
        has_excess,
        r"[0-9]+ ok",
        r"malformed",
    ),
    Difference(
        "What comes behind a whole answer is not the answer to the next call (RFC 9112, 9.2).",
        has_excess,
        r"[0-9]+ ok",
        r"[0-9]+ ok(?: reused| mixed up| reused mixed up)",
    ),
    Difference(
        "Chunks have one form (RFC 9112, 7.1); whoever forgives line ends, spaces or missing bytes in them may find"
        " another end. llhttp refuses a space before an extension, too, which 7.1.1 allows and nobody sends.",
        lambda answer: not well_chunked(answer),
        BROKEN,
        r"[0-9]+ (?:ok(?: reused)?|waits|truncated)",
    ),
    Difference(
        "A fault in the same read as the head: here the status is told and the body breaks off, there the whole answer"
        " is malformed. In pieces both tell the status.",
        in_rest(rb"."),
        r"[0-9]+ truncated",
        r"malformed",
    ),
    Difference(
        "A length may have 64 bits (RFC 9110, 8.6 sets no limit); llhttp's number for `no length` is 2**64 - 1.",
        in_head(rb"content-length:[ \t]*18446744073709551615"),
        r"[0-9]+ (?:waits|truncated)",
        r"[0-9]+ ok(?: reused)?",
    ),
    Difference(
        "Trailers say nothing of the connection (RFC 9110, 6.5.1); not to reuse it costs nothing.",
        in_rest(rb"\n0+\r\n.*connection"),
        r"[0-9]+ ok",
        r"[0-9]+ ok reused",
    ),
    Difference(
        "Trailers are skipped; their bytes are limited, not those of each line.",
        in_rest(rb"\n0+\r\n.*:.{5000}"),
        r"[0-9]+ ok(?: reused)?",
        r"malformed",
    ),
    Difference(
        "Nothing but a line end may come before a status line, and nobody asked for what is no HTTP (RFC 9112, 2.2).",
        in_head(rb"\A(?!(?:\r\n)?HTTP/)"),
        REFUSED,
        GOOD,
    ),
    Difference(
        "101 answers an offer to upgrade, and none is made (RFC 9110, 15.2.2).",
        in_head(rb"\AHTTP/1\.[01] 101"),
        r"malformed",
        r"101 ok(?: reused)?|waits|unanswered",
    ),
    Difference(
        "A body that only the end of the connection delimits is not whole where that is reset (RFC 9112, 8).",
        lambda answer: answer.ending == "rst",
        r"[0-9]+ truncated",
        r"[0-9]+ ok",
    ),
    Difference(
        "A connection that ends within a head has brought no answer; aiohttp says so but for calls of HEAD.",
        lambda answer: _HEAD_END.search(answer.head) is None,
        r"unanswered",
        r"malformed",
    ),
    Difference(
        "Chunks in HTTP/1.0 are faulty framing: the connection is closed after them (RFC 9112, 6.1).",
        in_head(rb"\AHTTP/1\.0 .*\ntransfer-encoding"),
        r"[0-9]+ ok",
        r"[0-9]+ ok reused",
    ),
)
