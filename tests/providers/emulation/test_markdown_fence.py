"""A Markdown fence around a whole text is removed, however the text is cut; the rest of the text is unchanged."""

from functools import partial

from providers.completion import Chunk
from providers.emulation.markdown_fence import MOST_HELD, FenceFilter, unfenced
from tests.support.cpu_growth import growth
from tests.support.looped import looped


@looped(
    ("text", "inner"),
    [
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('\n ```\r\n{"a": 1}\r\n  ```\n\n', '{"a": 1}'),
        ('```json\n{"a": "```"}\n```', '{"a": "```"}'),
        ('```json\n{"a":\n"```\n"}\n```', '{"a":\n"```\n"}'),
        ('```json\n{"a": 1', '{"a": 1'),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": 1}\n```', '{"a": 1}\n```'),
        ("Here it is:\n```json\n{}\n```", "Here it is:\n```json\n{}\n```"),
        ("```json {}```", "```json {}```"),
        ("``", "``"),
        ("````\n{}\n````", "````\n{}\n````"),
        ("", ""),
    ],
)
def test_only_a_fence_around_the_whole_is_taken(text: str, inner: str) -> None:
    assert unfenced(text) == inner
    for size in (1, 2, 3, 7):
        fence = FenceFilter()
        pieces = [fence.add(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join(pieces) + fence.end() == inner


def test_the_last_chunk_brings_what_was_held_back() -> None:
    fence = FenceFilter()
    chunks = [Chunk(0, "```json\n"), Chunk(0, "{}\n"), Chunk(0, "``"), Chunk(0, "x", "stop")]
    assert [next(iter(fence.feed(chunk))).text for chunk in chunks] == ["", "{}", "", "\n``x"]


@looped("piece", [" ", "\n", "`", "\n```", " \n\t"])
def test_the_time_is_linear_in_the_text(piece: str) -> None:
    def held(pieces: int) -> int:
        fence, most = FenceFilter(), 0
        fence.add("```json\n")
        for _ in range(pieces):
            fence.add(piece)
            most = max(most, len(fence._held))
        fence.end()
        return most

    assert held(20_000) <= MOST_HELD + len(piece)
    assert growth(partial(held, 5_000), partial(held, 20_000)) == ""
