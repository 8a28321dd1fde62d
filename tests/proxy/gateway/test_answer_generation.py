"""Calls that generate text, from their body to their record."""

import pytest

from tests.proxy.kit.gateway_rig import Rig, ask

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("stream", [False, True])
async def test_the_record_tells_what_was_asked_for_where_nothing_could_be_planned(served: Rig, stream: bool) -> None:
    answer = await served.post(
        "/v1/chat/completions",
        {
            **ask(stream=stream),
            "model": "v/unheard-of",
            "prompt": None,
            "messages": [{"role": "user", "content": "hi"}],
        },
    )
    assert (answer.status, answer.code) == (404, "model_not_found")
    (record,) = await served.finished(1)
    assert (record.asked, record.stream, record.model) == ("v/unheard-of", stream, "other")
