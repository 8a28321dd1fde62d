"""A renderer whose stream is gathered for the payload log as it is rendered: what the client is sent, and no more."""

from dataclasses import dataclass

from providers.completion import Chunk, Completion, TextRun, Usage
from proxy.errors import ErrorFacts
from proxy.request_record import RequestContent
from proxy.surfaces.surface import Renderer
from proxy.telemetry.observer_guard import OneGuard


@dataclass(frozen=True, slots=True)
class GatheringRenderer:
    """Renders by another renderer. See `proxy.surfaces.surface.Renderer`. After a fault in gathering, which
    `guard` reports, nothing more of the stream is gathered."""

    renderer: Renderer
    content: RequestContent
    guard: OneGuard

    def completion(self, completion: Completion) -> bytes:
        """See Renderer."""
        return self.renderer.completion(completion)

    def chunk(self, chunk: Chunk) -> bytes:
        """See Renderer."""
        self.guard.call(self.content.add_chunk, chunk)
        return self.renderer.chunk(chunk)

    def run(self, run: TextRun) -> bytes | None:
        """See Renderer."""
        frames = self.renderer.run(run)
        if frames is not None:
            self.guard.call(self.content.add_run, run)
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
