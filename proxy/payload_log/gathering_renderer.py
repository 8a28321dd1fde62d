"""A renderer whose stream is gathered for the payload log as it is rendered: what the client is sent, and no more."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from providers.completion import Chunk, Completion, TextRun, Usage
from proxy.errors import ErrorFacts
from proxy.request_record import RequestContent
from proxy.surfaces.surface import Renderer

Part = TypeVar("Part", Chunk, TextRun)


@dataclass(slots=True, eq=False)
class GatheringRenderer:
    """Renders by another renderer. See `proxy.surfaces.surface.Renderer`. `failed` is called while a fault in gathering
    is handled; after it nothing more of the stream is gathered."""

    renderer: Renderer
    content: RequestContent
    failed: Callable[[], None]
    _gathers: bool = True

    def completion(self, completion: Completion) -> bytes:
        """See Renderer."""
        return self.renderer.completion(completion)

    def chunk(self, chunk: Chunk) -> bytes:
        """See Renderer."""
        self._gather(self.content.add_chunk, chunk)
        return self.renderer.chunk(chunk)

    def run(self, run: TextRun) -> bytes | None:
        """See Renderer."""
        frames = self.renderer.run(run)
        if frames is not None:
            self._gather(self.content.add_run, run)
        return frames

    def usage(self, usage: Usage) -> bytes:
        """See Renderer."""
        return self.renderer.usage(usage)

    def end(self) -> bytes:
        """See Renderer."""
        return self.renderer.end()

    def error(self, facts: ErrorFacts) -> bytes:
        """See Renderer."""
        return self.renderer.error(facts)

    def _gather(self, add: Callable[[Part], None], part: Part) -> None:
        if not self._gathers:
            return
        try:
            add(part)
        except Exception:
            self._gathers = False
            self.failed()
