"""The parts of a stream that are long."""

from providers.completion import Chunk, ContentLogprobs, Extras, LegacyLogprobs, TextRun, TokenLogprob, ToolCallDelta
from proxy.relay.long_parts import LONG_PART, TOKEN_WEIGHT, is_long, weight_of_logprobs
from tests.support.looped import looped

SAID = "x" * (LONG_PART + 1)
TOKENS = ContentLogprobs((TokenLogprob("a", -1.0),) * 65)


@looped(
    "part",
    [
        Chunk(text=SAID),
        Chunk(reasoning=SAID),
        Chunk(tool_calls=(ToolCallDelta(0, arguments=SAID),)),
        Chunk(text="a", logprobs=TOKENS),
        Chunk(extras=Extras(message={"a": SAID})),
        TextRun(0, [SAID.encode()], {}, len(SAID), len(SAID)),
    ],
)
def test_a_part_of_many_bytes_is_long(part: Chunk | TextRun) -> None:
    assert is_long(part, 0)


def test_an_end_is_long_after_a_long_response_and_other_short_parts_never_are() -> None:
    assert is_long(Chunk(finish_reason="stop"), LONG_PART + 1)
    assert not is_long(Chunk(finish_reason="stop"), LONG_PART)
    assert not is_long(Chunk(text="a"), LONG_PART + 1)


def test_a_token_with_its_log_probability_weighs_as_much_in_either_form() -> None:
    assert weight_of_logprobs(LegacyLogprobs(("a", "b"), (-1.0, -1.0), None, None)) == 2 * TOKEN_WEIGHT
    assert weight_of_logprobs(TOKENS) == 65 * TOKEN_WEIGHT
