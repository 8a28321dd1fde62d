"""A stream out of a whole answer."""

import orjson
import pytest

from providers.completion import Choice, Chunk, Completion, Usage
from providers.dialects.shared import stream_from_whole as native_whole
from providers.dialects.shared.stream_from_whole import WholeStream
from providers.failure import FailureKind, UpstreamError


def decode(body: bytes) -> Completion:
    return Completion((Choice(0, orjson.loads(body), "stop"),), Usage(1, 2))


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_the_answer_comes_in_one_piece_at_the_end(size: int) -> None:
    stream, data = WholeStream(decode), b'"a whole answer"'
    for start in range(0, len(data), size):
        assert list(stream.feed(data[start : start + size])) == []
    assert not stream.complete
    assert list(stream.finish()) == [Chunk(text="a whole answer", finish_reason="stop"), Usage(1, 2)]
    assert stream.complete


@pytest.mark.parametrize("data", [b"", b'"a who', b"<html>"])
def test_a_body_that_is_cut_is_no_success(data: bytes) -> None:
    stream = WholeStream(decode)
    assert list(stream.feed(data)) == []
    with pytest.raises(UpstreamError) as caught:
        list(stream.finish())
    assert caught.value.failure.kind is FailureKind.TRUNCATED
    assert not stream.complete


def test_a_body_without_end_is_not_gathered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_whole, "MAX_BODY", 4)
    with pytest.raises(UpstreamError) as caught:
        list(WholeStream(decode).feed(b"12345"))
    assert caught.value.failure.kind is FailureKind.MALFORMED
