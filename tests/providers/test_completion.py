"""The common completion shape: the little that it computes."""

import pytest

from providers.completion import Chunk, Extras, NativeEvent, ToolCallDelta, Usage, has_content

OF_ANSWER = Extras(answer={"prompt_filter_results": []})


def test_the_total_is_prompt_and_completion_whatever_the_details() -> None:
    assert Usage(7, 5).total_tokens == 12
    assert Usage(7, 5, {"cached_tokens": 3}, {"reasoning_tokens": 2}).total_tokens == 12


@pytest.mark.parametrize(
    "chunk",
    [
        Chunk(),
        Chunk(text="x"),
        Chunk(finish_reason="stop", extras=OF_ANSWER),
        Chunk(reasoning="hm", extras=OF_ANSWER),
        Chunk(tool_calls=(ToolCallDelta(0, "c", "f"),), extras=OF_ANSWER),
        Chunk(refusal="no", extras=OF_ANSWER),
        Chunk(signature="s", extras=OF_ANSWER),
        Chunk(extras=Extras(reasoning_details=({"type": "reasoning.text"},))),
        Chunk(extras=Extras(annotations=({"type": "url_citation"},))),
        Chunk(extras=Extras(images=({"type": "image_url"},))),
        Chunk(extras=Extras(audio={"id": "a"})),
        Chunk(extras=Extras(message={"search": 1})),
    ],
)
def test_what_a_model_made_is_content(chunk: Chunk) -> None:
    assert has_content(chunk)


def test_what_a_vendor_says_of_a_choice_or_the_answer_is_none() -> None:
    assert not has_content(Chunk(extras=OF_ANSWER))
    assert not has_content(Chunk(system_fingerprint="fp", extras=OF_ANSWER))
    assert not has_content(Chunk(extras=Extras(choice={"content_filter_results": {}})))


def test_an_event_in_the_client_s_own_api_is_content_where_its_meaning_is() -> None:
    event = NativeEvent("message_start", b"{}")
    assert not has_content(Chunk(native=event))
    assert has_content(Chunk(text="x", native=event))
