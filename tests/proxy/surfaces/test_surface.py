"""Every surface's renderer makes the same of a run as of its chunks one by one, and is in the same state afterwards."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Chunk, Extras, RunPart, StreamPart, TextRun, ToolCallDelta, Usage
from providers.conversation import CLAUDE_FORMAT
from providers.failure import Failure, UpstreamError
from providers.framing.text_frames import MARK, text_run
from providers.json_types import JsonObject
from providers.unified_request import StreamOptions, UnifiedRequest
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import AnswerFacts, Renderer, Surface
from tests.providers.dialects.kit import chat_request, text_request
from tests.support.examples import examples
from tests.support.looped import looped


def _names(surface: Surface) -> set[str]:
    return {str(endpoint.action.value) for endpoint in surface.endpoints}


CHAT, TEXT = replace(chat_request(), stream=True), replace(text_request(), stream=True)
ASKED = [(surface, asked) for surface in SURFACES for asked in (CHAT, TEXT) if asked.operation.value in _names(surface)]


def renderer(surface: Surface, asked: UnifiedRequest, model: str = "v/m") -> Renderer:
    return surface.renderer(asked, AnswerFacts("1", 1_795_000_000, model))


def rendered(made: Renderer, parts: list[StreamPart], *, runs: bool) -> tuple[bytes, Failure | None]:
    """Return the renderer's output for parts of a stream and at its end, and the failure that stopped it."""
    frames: list[bytes] = []
    try:
        for part in parts:
            written = made.run(part) if runs and isinstance(part, TextRun) else None
            if written is not None:
                frames.append(written)
                continue
            for event in part.chunks() if isinstance(part, TextRun) else (part,):
                frames.append(made.chunk(event) if isinstance(event, Chunk) else made.usage(event))
        frames.append(made.end())
    except UpstreamError as error:
        return b"".join(frames), error.failure
    return b"".join(frames), None


def run_of(*literals: bytes, index: int = 0, fingerprint: str | None = None) -> TextRun:
    run = text_run(index, [*literals], fingerprint)
    assert run is not None
    return run


def part_run(part: RunPart, *literals: bytes, index: int = 0, call: int = 0, fingerprint: str | None = None) -> TextRun:
    return replace(run_of(*literals, index=index, fingerprint=fingerprint), part=part, call=call, characters=0)


def begun(call: int, name: str = "look") -> Chunk:
    return Chunk(tool_calls=(ToolCallDelta(call, f"c{call}", name),))


CLAUDES: JsonObject = {"type": "reasoning.text", "text": "", "format": CLAUDE_FORMAT, "index": 0}
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
    part_run("reasoning", b"r"),
    part_run("reasoning", b"r", b" s", fingerprint="f"),
    part_run("reasoning", b"r", b'\\"', MARK.encode(), index=1, fingerprint=f"a {MARK}"),
    begun(0),
    begun(1),
    Chunk(reasoning="t", extras=Extras(reasoning_details=({**CLAUDES, "text": "t"},))),
    replace(part_run("reasoning", b"r", b'\\"', fingerprint="f"), detail=CLAUDES),
    replace(part_run("reasoning", b"s"), detail={**CLAUDES, "index": 1}),
    part_run("arguments", b"{", b"}"),
    part_run("arguments", b"{", b"}", call=1, fingerprint="f"),
    part_run("arguments", b'{\\"a\\"', b":1}", call=1),
    Chunk(finish_reason="stop", service_tier="flex"),
)


@looped(("surface", "asked"), ASKED)
@given(st.lists(st.sampled_from(PARTS), max_size=8), st.tuples(st.booleans(), st.booleans(), st.booleans()))
@examples(300)
def test_a_run_is_written_as_its_chunks_are(
    surface: Surface, asked: UnifiedRequest, parts: list[StreamPart], wants: tuple[bool, bool, bool]
) -> None:
    usage, running, legacy = wants
    asked = replace(asked, stream_options=StreamOptions(usage, running), legacy_calls=legacy)
    in_runs, one_by_one = (rendered(renderer(surface, asked), parts, runs=runs) for runs in (True, False))
    assert in_runs == one_by_one


@looped(("surface", "asked"), ASKED)
def test_a_models_name_is_never_taken_for_a_piece(surface: Surface, asked: UnifiedRequest) -> None:
    parts: list[StreamPart] = [Chunk(text="a"), begun(0), part_run("reasoning", b"r"), part_run("arguments", b"{}")]
    in_runs, one_by_one = (rendered(renderer(surface, asked, MARK), parts, runs=runs) for runs in (True, False))
    assert in_runs == one_by_one
