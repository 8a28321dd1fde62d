"""The head of a vendor's response: its limits, and the framing of a body."""

from proxy.http_client.answer_head import (
    FIELD_LIMIT,
    HEAD_LIMIT,
    LINE_LIMIT,
    is_uncoded,
    plainly_chunked,
    within_limits,
)
from tests.support.looped import looped

OK = b"HTTP/1.1 200 OK\r\n"


def head(*fields: bytes, first: bytes = OK) -> bytes:
    return first + b"".join([field + b"\r\n" for field in fields]) + b"\r\n"


@looped("good", [head(), head(first=b"HTTP/1.0 404 \r\n"), head(*[b"a: b"] * FIELD_LIMIT), head(b"a" * LINE_LIMIT)])
def test_a_final_answer_s_head_of_common_size_is_within_the_limits(good: bytes) -> None:
    assert within_limits(good)


@looped(
    "bad",
    [
        *(head(first=b"HTTP/1.1 101 x\r\n"), head(first=b"HTTP/2.0 200 x\r\n"), head(first=b"ICY 200 OK\r\n")),
        *(head(*[b"a: b"] * (FIELD_LIMIT + 1)), head(b"a" * (LINE_LIMIT + 1))),
        head(*[b"a" * LINE_LIMIT] * (HEAD_LIMIT // LINE_LIMIT + 1)),
    ],
)
def test_every_other_head_is_not(bad: bytes) -> None:
    assert not within_limits(bad)


def test_a_body_is_in_chunks_where_that_is_the_only_coding() -> None:
    assert plainly_chunked(head(b"transfer-encoding: chunked"))
    for fields in ([b"transfer-encoding: gzip, chunked"], [b"transfer-encoding: chunked"] * 2, [b"a: chunked"], []):
        assert not plainly_chunked(head(*fields))


def test_the_coding_that_is_none_needs_to_stand_alone() -> None:
    assert is_uncoded(head(b"transfer-encoding: identity"))
    for fields in ([b"transfer-encoding: identity", b"content-length: 1"], [b"transfer-encoding: identity"] * 2, []):
        assert not is_uncoded(head(*fields))
