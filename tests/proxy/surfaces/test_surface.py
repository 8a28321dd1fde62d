"""What every surface's renderer makes of a run: the same as of its chunks one by one, and the same afterwards."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Chunk, StreamPart, TextRun, Usage
from providers.framing.text_frames import text_run
from providers.unified_request import StreamOptions, UnifiedRequest
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import AnswerFacts, Renderer, Surface, chunk_by_chunk
from tests.providers.dialects.kit import chat_request, text_request


def _names(surface: Surface) -> set[str]:
    return {str(endpoint.action.value) for endpoint in surface.endpoints}


CHAT, TEXT = replace(chat_request(), stream=True), replace(text_request(), stream=True)
ASKED = [(surface, asked) for surface in SURFACES for asked in (CHAT, TEXT) if asked.operation.value in _names(surface)]


def renderer(surface: Surface, asked: UnifiedRequest) -> Renderer:
    return surface.renderer(asked, AnswerFacts("1", 1_795_000_000, "v/m"))


def rendered(made: Renderer, parts: list[StreamPart], *, runs: bool) -> list[bytes]:
    """What a renderer writes for parts of a stream, and at its end."""
    frames: list[bytes] = []
    for part in parts:
        if isinstance(part, TextRun):
            frames.append(made.run(part) if runs else chunk_by_chunk(made, part))
        else:
            frames.append(made.chunk(part) if isinstance(part, Chunk) else made.usage(part))
    return [*frames, made.end()]


def run_of(*literals: bytes, index: int = 0, fingerprint: str | None = None) -> TextRun:
    run = text_run(index, [*literals], fingerprint)
    assert run is not None
    return run


PARTS: tuple[StreamPart, ...] = (
    Chunk(text="a"),
    Chunk(0, "b", system_fingerprint="f"),
    Chunk(reasoning="thinks"),
    Chunk(1, "other"),
    Usage(1, 2),
    run_of(b"x"),
    run_of(b" y", b"z", fingerprint="f"),
    run_of(b"w", fingerprint="g"),
    run_of(b"\\n", b"plain", b"\\u0041", "天".encode(), b"\\ud83d\\ude00", b"\\/", b"\x7f"),
    run_of(b"v", b'\\"', index=1),
    Chunk(finish_reason="stop", service_tier="flex"),
)


@pytest.mark.parametrize(("surface", "asked"), ASKED)
@given(st.lists(st.sampled_from(PARTS), max_size=8), st.booleans(), st.booleans())
def test_a_run_is_written_as_its_chunks_are(
    surface: Surface, asked: UnifiedRequest, parts: list[StreamPart], usage: bool, running: bool
) -> None:
    asked = replace(asked, stream_options=StreamOptions(usage, running))
    both = [rendered(renderer(surface, asked), parts, runs=runs) for runs in (True, False)]
    assert both[0] == both[1]
