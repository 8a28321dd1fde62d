"""The results of a run as values, and the targets with their verdicts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.bench.agents.beside import Beside
from tests.bench.agents.measure import Cost
from tests.bench.cases import ANTHROPIC, BEDROCK, REQUEST, STREAMS_60, STREAMS_300, TLS_60, UNPACED
from tests.bench.latency import Added
from tests.bench.machine import Interpreter, Machine
from tests.bench.measure import Outcome
from tests.bench.memory import Held

GATEWAY, NGINX = "gateway", "nginx"
KB, MB = 1024, 2**20


@dataclass(frozen=True, slots=True)
class Kept:
    """One program's memory in bytes: at rest, for an idle stream (`None` if it was not measured), after load."""

    rest: Held
    stream: float | None
    loaded: Held


@dataclass(frozen=True, slots=True)
class Workers:
    """A supervisor with two workers: its memory, and the cost of a request with it and with one process, on any
    core."""

    held: Held
    two: Outcome
    one: Outcome


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a run. Anything that was not measured is absent."""

    machine: Machine
    interpreter: Interpreter
    versions: Mapping[str, str]
    command: str
    outcomes: Mapping[str, Mapping[str, Outcome]] = field(default_factory=dict)
    added: Mapping[str, Added] = field(default_factory=dict)
    memory: Mapping[str, Kept] = field(default_factory=dict)
    workers: Workers | None = None
    agents: Mapping[str, Sequence[Cost]] = field(default_factory=dict)
    beside: Sequence[Beside] = ()
    start: float | None = None

    def outcome(self, case: str, program: str) -> Outcome | None:
        """Return a program's outcome under a case, if it has a valid one."""
        found = self.outcomes.get(case, {}).get(program)
        return found if found is not None and found.turns else None

    def times_nginx(self, case: str, program: str = GATEWAY) -> float | None:
        """Return a program's cost as a multiple of nginx's CPU."""
        ours, theirs = self.outcome(case, program), self.outcome(case, NGINX)
        return ours.total / theirs.total if ours and theirs else None


@dataclass(frozen=True, slots=True)
class Aim:
    """A target: its subject, its unit, its first value, the required value, the desired value, and the function that
    finds it in the results."""

    name: str
    unit: str
    before: str
    must: float
    aim: float
    value: Callable[[Results], float | None]

    def verdict(self, results: Results) -> str:
        value = self.value(results)
        if value is None:
            return "not measured"
        return "aim met" if value <= self.aim else "must met" if value <= self.must else "missed"


def _ratio(case: str) -> Callable[[Results], float | None]:
    return lambda results: results.times_nginx(case)


def _user_unpaced(results: Results) -> float | None:
    found = results.outcome(UNPACED, GATEWAY)
    return found.user if found else None


def _stream_memory(results: Results) -> float | None:
    kept = results.memory.get(GATEWAY)
    return kept.stream / KB if kept and kept.stream is not None else None


def _two_workers(results: Results) -> float | None:
    return results.workers.held.proportional / MB if results.workers else None


def _second_worker(results: Results) -> float | None:
    workers = results.workers
    return workers.two.total / workers.one.total if workers and workers.two.turns and workers.one.turns else None


def _added(results: Results) -> float | None:
    added = results.added.get(GATEWAY)
    return added.slow if added else None


def _native(results: Results) -> float | None:
    """Return the cost of the more expensive dialect's chunk as a multiple of the family's, at 300 streams."""
    family = results.outcome(STREAMS_300, GATEWAY)
    native = [results.outcome(f"{name} {STREAMS_300}", GATEWAY) for name in (ANTHROPIC, BEDROCK)]
    if family is None or None in native:
        return None
    return max(each.total for each in native if each) / family.total


AIMS: Sequence[Aim] = (
    Aim("streamed chunk, 20 ms, 300 streams", "× nginx", "4.0", 2.2, 1.75, _ratio(STREAMS_300)),
    Aim("streamed chunk, 20 ms, 60 streams", "× nginx", "3.8", 2.4, 1.9, _ratio(STREAMS_60)),
    Aim("streamed chunk, 60 streams, TLS to the vendor", "× nginx", "3.6", 2.2, 1.7, _ratio(TLS_60)),
    Aim("request", "× nginx", "16.6", 7.5, 6.0, _ratio(REQUEST)),
    Aim("unpaced stream of 1,000 chunks, user time", "µs a chunk", "5.6–7", 3.0, 1.5, _user_unpaced),
    Aim("idle relayed stream", "KB", "41", 20, 16, _stream_memory),
    Aim("supervisor and two workers, PSS", "MB", "150", 100, 85, _two_workers),
    Aim("p99 added at half load", "ms", "–", 2.0, 1.0, _added),
    Aim("native dialects' chunk, 300 streams", "× the family's", "1.05–1.8", 1.5, 1.2, _native),
    Aim("CPU a request, two workers", "× one process's", "–", 1.10, 1.05, _second_worker),
)
