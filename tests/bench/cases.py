"""The measured cases."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tests.bench.traffic import Ask

CONNECTIONS, FEW = 32, 4
"""Connections of requests and of short streams, and of cases that occupy a program for long. A gateway that refuses
requests when its event loop is late would refuse more of the latter."""

Surface = Literal["chat", "messages"]

FAMILY, ANTHROPIC, BEDROCK = "openai", "anthropic", "bedrock"


@dataclass(frozen=True, slots=True)
class Case:
    """One load: the request, the number of connections, the vendor's dialect, whether the vendor is reached over TLS,
    and the API that clients of gateways speak.

    Every run measures the `core` cases, which include every case with a target.
    """

    name: str
    ask: Ask
    connections: int = CONNECTIONS
    dialect: str = FAMILY
    tls: bool = False
    core: bool = False
    surface: Surface = "chat"

    @property
    def unit(self) -> str:
        return "chunk" if self.ask.chunks else "request"

    @property
    def spread(self) -> float:
        """Return the seconds within which the connections are opened. It is the duration of one stream, so that at any
        time as many streams begin as end."""
        return min(2.0, self.ask.chunks * self.ask.pace / 1000)

    @property
    def events_a_second(self) -> float:
        """Return the chunks that a pace allows each second. Return 0 without a pace."""
        return self.connections * 1000 / self.ask.pace if self.ask.pace else 0.0


REQUEST = "request"
STREAMS_300 = "chunk, 300 streams"
STREAMS_60 = "chunk, 60 streams"
UNPACED = "chunk, 1,000 unpaced"
TLS_60 = "chunk, 60 streams, TLS"
"""Cases with a target (`results.py`)."""

_PACED = Ask(chunks=65, pace=20)
_LONG = Ask(chunks=1000, pace=20)
_AT_ONCE = Ask(chunks=1000)

_CORE = (
    Case(REQUEST, Ask(), core=True),
    Case(STREAMS_60, _PACED, 60, core=True),
    Case(STREAMS_300, _PACED, 300, core=True),
    Case(TLS_60, _PACED, 60, tls=True, core=True),
    Case(UNPACED, _AT_ONCE, FEW, core=True),
)

_FAMILY = (
    Case("request, answer of 100 KB", Ask(answer=100_000)),
    Case("request, prompt of 500 KB", Ask(prompt=500_000), FEW),
    Case("request, TLS", Ask(), tls=True),
    Case("chunk, 65 unpaced", Ask(chunks=65)),
    Case("chunk, 60 streams of 1,000", _LONG, 60),
    Case("chunk, 300 streams of 1,000", _LONG, 300),
    Case("chunk, 300 streams, TLS", _PACED, 300, tls=True),
    Case("chunk, 1,000 unpaced, TLS", _AT_ONCE, FEW, tls=True),
    Case("chunk, 300 streams, Japanese", replace(_PACED, flavour="japanese"), 300),
    Case("chunk, 1,000 unpaced, Japanese", replace(_AT_ONCE, flavour="japanese"), FEW),
    Case("chunk, 300 streams, obfuscation", replace(_PACED, flavour="obfuscated"), 300),
    Case("chunk, 1,000 unpaced, obfuscation", replace(_AT_ONCE, flavour="obfuscated"), FEW),
)


def of_dialect(dialect: str) -> Iterator[Case]:
    """Yield the cases of another dialect than the family's."""
    yield Case(f"{dialect} request", Ask(), dialect=dialect)
    yield Case(f"{dialect} request, answer of 100 KB", Ask(answer=100_000), dialect=dialect)
    yield Case(f"{dialect} request, prompt of 500 KB", Ask(prompt=500_000), FEW, dialect)
    yield Case(f"{dialect} request, TLS", Ask(), dialect=dialect, tls=True)
    yield Case(f"{dialect} chunk, 60 streams", _PACED, 60, dialect)
    yield Case(f"{dialect} chunk, 60 streams, TLS", _PACED, 60, dialect, tls=True)
    yield Case(f"{dialect} {STREAMS_300}", _PACED, 300, dialect, core=True)
    yield Case(f"{dialect} chunk, 65 unpaced", Ask(chunks=65), dialect=dialect)
    yield Case(f"{dialect} chunk, 1,000 unpaced", _AT_ONCE, FEW, dialect)


AGENTS = "agents"
"""The prefix of the names of all rows of coding agents' requests and responses."""


def of_agents() -> Iterator[Case]:
    """Yield the streams of coding agents: reasoning, the arguments of a call, and text, from Claude."""
    surfaces: Sequence[Surface] = ("messages", "chat")
    for surface in surfaces:
        for flavour, content in (("thinking", "thinking"), ("arguments", "arguments"), ("english", "text")):
            name, ask = f"{AGENTS} {surface} → anthropic, chunk of {content}", replace(_PACED, flavour=flavour)
            yield Case(f"{name}, 60 streams", ask, 60, ANTHROPIC, surface=surface)
            unpaced = replace(_AT_ONCE, flavour=flavour)
            yield Case(f"{name}, 1,000 unpaced", unpaced, FEW, ANTHROPIC, core=True, surface=surface)


CASES: Sequence[Case] = (*_CORE, *_FAMILY, *of_dialect(ANTHROPIC), *of_dialect(BEDROCK), *of_agents())


def chosen(full: bool, words: Sequence[str]) -> list[Case]:
    """Return the cases of a run: the cases whose name contains one of the words. Without words, return all or the
    core."""
    if words:
        return [case for case in CASES if any(word in case.name for word in words)]
    return [case for case in CASES if full or case.core]
