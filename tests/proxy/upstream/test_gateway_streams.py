"""A response that the gateway makes without a call, as a stream."""

import pytest

from providers.completion import Chunk
from proxy.upstream.gateway_streams import LocalStream
from tests.proxy.kit.mark_streams import USAGE
from tests.proxy.kit.merged_calls import said
from tests.proxy.kit.virtual_time import in_virtual_time

pytestmark = pytest.mark.smoke


@in_virtual_time
async def test_an_answer_that_is_known_needs_no_waiting() -> None:
    stream = LocalStream([Chunk(finish_reason="length"), USAGE])
    assert said(list(stream.first())) == ["0.", "#6+2"]
    assert stream.over
    await stream.wait()
    assert [*stream.take(), *stream.conclude()] == []
    await stream.finish()
    stream.close()
