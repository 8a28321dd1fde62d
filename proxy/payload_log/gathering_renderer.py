"""A renderer that gathers a stream for the payload log while it renders it, so that the log has exactly the content
that the client is sent."""

from dataclasses import dataclass

from providers.completion import Chunk, Completion, TextRun, Usage
from proxy.errors import ErrorFacts
from proxy.request_record import RequestContent
from proxy.surfaces.surface import Renderer
from proxy.telemetry.observer_guard import OneGuard


@dataclass(frozen=True, slots=True)
class GatheringRenderer:
    """Renders with another renderer. See `proxy.surfaces.surface.Renderer`. After a fault of the gathering, which
    `guard` reports, the rest of the stream is not gathered."""

    renderer: Renderer
    content: RequestContent
    guard: OneGuard

    def completion(self, completion: Completion) -> bytes:
        """Render a response. See Renderer."""
        return self.renderer.completion(completion)

    def chunk(self, chunk: Chunk) -> bytes:
        """Render a chunk, and gather it. See Renderer."""
        self.guard.call(self.content.add_chunk, chunk)
        return self.renderer.chunk(chunk)

    def run(self, run: TextRun) -> bytes | None:
        """Render a run, and gather it. See Renderer."""
        frames = self.renderer.run(run)
        if frames is not None:
            self.guard.call(self.content.add_run, run)
        return frames

    def usage(self, usage: Usage) -> bytes:
        """Render the usage. See Renderer."""
        return self.renderer.usage(usage)

    def end(self) -> bytes:
        """Render the end. See Renderer."""
        return self.renderer.end()

    def error(self, facts: ErrorFacts) -> bytes:
        """Render an error. See Renderer."""
        return self.renderer.error(facts)
