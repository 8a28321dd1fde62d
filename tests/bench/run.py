"""Measures the gateway beside nginx and others in one run: `python -m tests.bench`.

The gateway checks a key, resolves a model, parses and writes JSON in both directions, counts and logs. nginx, HAProxy
and Envoy forward the same bytes and log nothing. Programs alternate under each load. Without arguments it measures the
core cases beside nginx. At the end it measures the cost of a chunk in each dialect, and of requests and chunks on each
surface, without a socket.
"""

import argparse
import asyncio
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvloop

from tests.bench import dialects, surfaces
from tests.bench.ablation.turns import ablation_table, measured_worths
from tests.bench.agents.beside import Beside, measured_beside
from tests.bench.agents.bodies import LARGE
from tests.bench.agents.hostile import hostile_rows
from tests.bench.agents.measure import AgentsRow, Cost, measured_rows
from tests.bench.agents.report import beside_row, cost_row
from tests.bench.agents.rows import chosen_rows
from tests.bench.cases import AGENTS, CASES, REQUEST, Case, chosen
from tests.bench.cpu import family_pids, pin_pids
from tests.bench.latency import Added, Way, due_times, timed_run
from tests.bench.load import WrongAnswer
from tests.bench.machine import interpreter, machine
from tests.bench.measure import Outcome, Times, measure_case, separate
from tests.bench.memory import Held, held, idle_stream_bytes
from tests.bench.probe import probe
from tests.bench.profiling import profile_text, profiled, profiled_case
from tests.bench.programs.bare_relay import bare_relay
from tests.bench.programs.control import running_control
from tests.bench.programs.envoy import envoy
from tests.bench.programs.gateway import Build
from tests.bench.programs.haproxy import haproxy
from tests.bench.programs.litellm import litellm
from tests.bench.programs.nginx import HINT, nginx
from tests.bench.programs.program import Program, Target
from tests.bench.programs.scripted import scripted
from tests.bench.report import ABLATION, TITLE, live_line, report, section_of, summary, with_section
from tests.bench.results import NGINX, Kept, Results, Workers
from tests.bench.upstream import RunningUpstream, running_upstream

RESULTS = Path(__file__).with_name("RESULTS.md")
KNOWN: Mapping[str, Callable[[], Program | None]] = {
    "nginx": nginx,
    "bare-relay": bare_relay,
    "haproxy": haproxy,
    "envoy": envoy,
    "litellm": litellm,
}
"""The programs beside the gateway that the bench can start by itself, if they are installed."""

YARDSTICKS = ("nginx", "bare-relay")
"""The programs that are measured beside the gateway by default."""

ABLATION_TURNS = 10

CROWDS = ("chat → openai", "chat → anthropic")
"""Kinds of large requests beside which light ones are measured."""

STEPS = frozenset({"cpu", "agents", "latency", "memory", "workers", "parts"})


@dataclass(frozen=True, slots=True)
class Order:
    """The options of a run."""

    full: bool = False
    words: Sequence[str] = ()
    beside: Sequence[str] = YARDSTICKS
    peers: Sequence[str] = ()
    against: Mapping[str, Path] = field(default_factory=dict)
    python: str = sys.executable
    times: Times = field(default_factory=Times)
    write: bool = False
    profile: str = ""
    ablate: bool = False
    steps: frozenset[str] = STEPS


def ordered(arguments: Sequence[str]) -> Order:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    add = parser.add_argument
    add("--full", action="store_true", help="every case, beside every program that is installed")
    add("--report", action="store_true", help=f"write {RESULTS.name} too")
    add("--case", action="append", default=[], metavar="WORD", help="only cases with this in their name; repeatable")
    add("--beside", help=f"programs to measure beside, of {', '.join(KNOWN)} ({','.join(YARDSTICKS)}; with --full all)")
    add("--peer", action="append", default=[], metavar="NAME=SCRIPT", help="another gateway; see README.md; repeatable")
    add("--against", action="append", default=[], metavar="NAME=FOLDER", help="another checkout; repeatable")
    add("--python", default=sys.executable, help="the interpreter that runs the gateway (%(default)s)")
    add("--turns", type=int, default=0, help="turns, of which the cheapest counts (3; with --ablate 10)")
    add("--window", type=float, default=2.0, help="seconds that are measured in each (%(default)s)")
    add("--ramp", type=float, default=0.5, help="seconds before them (%(default)s)")
    add("--profile", default="", metavar="CASE", help="instead: where the CPU of request, chunk or a case's name goes")
    add("--ablate", action="store_true", help="instead: what each short way beside an ordinary one saves, in ten turns")
    add("--only", help="of cpu, agents, latency, memory, workers, parts, those to measure")
    asked = parser.parse_args(arguments)
    beside = asked.beside.split(",") if asked.beside is not None else list(KNOWN if asked.full else YARDSTICKS)
    if unknown := {name for name in beside if name} - KNOWN.keys():
        parser.error(f"--beside knows no {', '.join(sorted(unknown))}")
    steps = frozenset(asked.only.split(",")) if asked.only else STEPS
    if asked.case and all(word.startswith(AGENTS) for word in asked.case):
        steps &= {"cpu", "agents"}
    return Order(
        full=asked.full,
        words=asked.case,
        beside=[name for name in beside if name],
        peers=asked.peer,
        against={name: Path(folder) for name, _, folder in (each.partition("=") for each in asked.against)},
        python=os.path.abspath(shutil.which(asked.python) or asked.python),
        times=Times(asked.turns or (ABLATION_TURNS if asked.ablate else 3), asked.ramp, asked.window),
        write=asked.report,
        profile=asked.profile,
        ablate=asked.ablate,
        steps=steps,
    )


def programs(order: Order) -> list[Program]:
    """Return the measured programs: the gateway first, then nginx, then the others."""
    builds = [Build(python=order.python)]
    builds += [Build(name, folder.resolve(), order.python) for name, folder in order.against.items()]
    known = [(name, bare_relay(order.python) if name == "bare-relay" else KNOWN[name]()) for name in order.beside]
    for name, program in known:
        if program is None:
            print(HINT if name == NGINX else f"{name} is not installed (README.md says how)")
    found = [program for _, program in known if program is not None]
    return [*(build.program() for build in builds), *found, *map(scripted, order.peers)]


@dataclass(frozen=True, slots=True)
class Stage:
    """A current run: its programs, the processes of load and upstream, and a folder."""

    order: Order
    upstream: RunningUpstream
    targets: Sequence[Target]
    load: Sequence[int]
    folder: Path
    cores: Sequence[int]


def start_all(stack: ExitStack, found: Iterable[Program], folder: Path, upstream: RunningUpstream) -> list[Target]:
    """Start every program, each in a folder of its own. They run until the stack unwinds."""
    targets = []
    for program in found:
        place = folder / program.name
        place.mkdir()
        targets.append(stack.enter_context(program.start(place, upstream)))
        print(f"{program.name} {program.version} runs")
    return targets


async def measured_cases(stage: Stage) -> dict[str, Mapping[str, Outcome]]:
    """Measure every case of the order, and report each at once."""
    outcomes: dict[str, Mapping[str, Outcome]] = {}
    for case in chosen(stage.order.full, stage.order.words):
        outcomes[case.name] = await measure_case(stage.targets, case, stage.load, stage.order.times)
        for name, outcome in outcomes[case.name].items():
            print(live_line(case.name, outcome, name), flush=True)
    return outcomes


async def measured_agents(stage: Stage) -> Mapping[str, Sequence[Cost]]:
    """Measure the requests of coding agents in every program that supports them."""
    words = stage.order.words
    hostile = [each for each in hostile_rows() if not words or any(word in each.name for word in words)]
    found: list[AgentsRow] = [*chosen_rows(words), *hostile]
    if not found:
        return {}
    costs = await measured_rows(stage.targets, found, stage.order.python, min(stage.cores), stage.order.times)
    for name, of_program in costs.items():
        for cost in of_program:
            print(name, *cost_row(cost), flush=True)
    return costs


async def measured_crowds(stage: Stage) -> list[Beside]:
    """Measure the effect of ten requests of 3 MB on the gateway: within a family and translated, in the JSON of clients
    in Python."""
    crowds = [row for row in chosen_rows(stage.order.words) if row.way in CROWDS and row.size == LARGE and row.spaced]
    found = [await measured_beside(stage.targets[0], row, max(stage.cores)) for row in crowds]
    for each in found:
        if each is not None:
            print(*beside_row(each), flush=True)
    return [each for each in found if each is not None]


def request_case() -> Case:
    return next(case for case in CASES if case.name == REQUEST)


async def measured_latency(stage: Stage) -> dict[str, Added]:
    """Measure the latency of each program at half of the gateway's maximal rate, in alternate turns with the direct
    path. Also measure a control that is as busy as the gateway was. A program that cannot reach the rate has no
    result."""
    case = request_case()
    capacity = await measure_case(stage.targets[:1], case, stage.load, replace(stage.order.times, turns=1))
    if not capacity[stage.targets[0].name].turns:
        return {}
    rate = 0.5e6 / capacity[stage.targets[0].name].total
    added: dict[str, Added] = {}
    for target in stage.targets:
        await measure_added(stage, target, rate, added)
    name = stage.targets[0].name
    if name in added:
        place = stage.folder / "control"
        place.mkdir()
        with running_control(place, added[name].best.busy / rate) as control:
            separate([control.pid], stage.load)
            await measure_added(stage, control, rate, added)
    return added


async def measure_added(stage: Stage, target: Target, rate: float, added: dict[str, Added]) -> None:
    """Record the latency that one program adds at a rate, if it has the case and can reach the rate."""
    case, due = request_case(), due_times(rate, stage.order.times.clocked)
    if (request := target.request(case)) is not None:
        expected = await probe(target.port_of(case), request, target.wire(case), case.ask)
        straight = await probe(stage.upstream.port, request, target.wire(case), case.ask)
        past = Way(stage.upstream.port, (), stage.load)
        way = Way(target.port_of(case), family_pids(target.pid), stage.load)
        direct, through = [], []
        try:
            for _ in range(stage.order.times.turns):
                direct.append(await timed_run(past, request, straight, due))
                through.append(await timed_run(way, request, expected, due))
        except (WrongAnswer, OSError, TimeoutError) as error:
            print(f"{target.name} at {rate:.0f} a second: no result, {str(error)[:200] or type(error).__name__}")
        else:
            added[target.name] = Added(rate, direct, through)


async def idle_streams(stage: Stage) -> dict[str, float]:
    """Return the memory of an idle stream in each program."""
    found, times = {}, stage.order.times
    for target in stage.targets:
        try:
            found[target.name] = await idle_stream_bytes(target, times.idle, times.settle)
        except (WrongAnswer, OSError, TimeoutError) as error:
            print(f"{target.name} with idle streams: no result, {str(error)[:200] or type(error).__name__}")
    return found


async def measured_workers(stage: Stage) -> Workers | None:
    """Measure a supervisor with two workers, and one process, each on any core: the memory of the supervisor, and the
    cost of a request with both."""
    case = request_case()
    taken: list[Outcome] = []
    memory = Held(0, 0)
    for count in (1, 2):
        build = Build(f"workers{count}", python=stage.order.python, workers=count)
        place = stage.folder / build.name
        place.mkdir()
        with build.start(place, stage.upstream) as target:
            await asyncio.sleep(stage.order.times.settle)
            memory = held(target.pid)
            pin_pids([*family_pids(target.pid), *stage.load], stage.cores)
            taken.append((await measure_case([target], case, stage.load, stage.order.times))[target.name])
    return Workers(memory, taken[1], taken[0])


def start_seconds(stage: Stage) -> float:
    """Return the shortest of several starts, from the start of the process until it is ready."""
    taken = []
    for number in range(stage.order.times.starts):
        build = Build(f"start{number}", python=stage.order.python)
        (stage.folder / build.name).mkdir()
        started = time.perf_counter()
        with build.start(stage.folder / build.name, stage.upstream):
            taken.append(time.perf_counter() - started)
    return min(taken)


async def bench(order: Order, folder: Path, command: str) -> Results:
    """Measure the ordered cases."""
    found, cores = programs(order), sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        upstream = stack.enter_context(running_upstream(folder))
        results = Results(machine(), interpreter(order.python), {each.name: each.version for each in found}, command)
        targets = start_all(stack, found, folder, upstream)
        stage = Stage(order, upstream, targets, [os.getpid(), upstream.pid], folder, cores)
        separate([target.pid for target in targets], stage.load)
        rest = {target.name: held(target.pid) for target in targets}
        streams = await idle_streams(stage) if "memory" in order.steps else {}
        if "cpu" in order.steps:
            results = replace(results, outcomes=await measured_cases(stage))
        if "agents" in order.steps:
            results = replace(results, agents=await measured_agents(stage), beside=await measured_crowds(stage))
        if "latency" in order.steps:
            results = replace(results, added=await measured_latency(stage))
        if "memory" in order.steps:
            kept = {each.name: Kept(rest[each.name], streams.get(each.name), held(each.pid)) for each in targets}
            results = replace(results, memory=kept, start=start_seconds(stage))
    if "workers" in order.steps:
        with running_upstream(folder) as upstream:
            stage = Stage(order, upstream, targets, [os.getpid(), upstream.pid], folder, cores)
            results = replace(results, workers=await measured_workers(stage))
    return results


def kept_report(results: Results) -> str:
    """Return the report, with the section on mechanisms of the previous run, which is measured separately."""
    before = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    found = section_of(before, ABLATION)
    return with_section(report(results), ABLATION, found) if found else report(results)


async def ablated(order: Order, folder: Path) -> None:
    """Measure the savings of each mechanism, print the table, and write it if that is ordered."""
    with running_upstream(folder) as upstream:
        lines = ablation_table(await measured_worths(order.words, order.python, folder, upstream, order.times))
    print("\n".join(lines))
    if order.write:
        text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else f"{TITLE}\n"
        RESULTS.write_text(with_section(text, ABLATION, lines), encoding="utf-8")


def main() -> None:
    """Measure, print, and write the report if that is ordered."""
    order = ordered(sys.argv[1:])
    if order.ablate:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            uvloop.run(ablated(order, Path(folder)))
        return
    if order.profile:
        case = profiled_case(order.profile)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            print(profile_text(uvloop.run(profiled(case, Build(python=order.python), Path(folder))), case))
        return
    command = shlex.join(["python", "-m", "tests.bench", *sys.argv[1:]])
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # On asyncio's own loop the load would be slower than nginx, and a program that waits costs more for each
        # request.
        results = uvloop.run(bench(order, Path(folder), command))
    print()
    print(report(results) if order.full or not order.write else summary(results))
    if order.write:
        RESULTS.write_text(kept_report(results), encoding="utf-8")
    if "parts" in order.steps:
        dialects.main()
        print()
        surfaces.main()
