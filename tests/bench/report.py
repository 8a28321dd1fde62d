"""The tables of a run in Markdown. They are printed, and written to RESULTS.md."""

from collections.abc import Iterator, Sequence

from tests.bench.agents.report import agents_section
from tests.bench.cases import CASES
from tests.bench.measure import BUSY, Outcome
from tests.bench.results import AIMS, KB, MB, Results
from tests.bench.tables import table

TITLE = "# What the gateway costs, measured"
FIELDS = ("Date", "Machine", "Kernel", "Other load", "Python", "Libraries", "Programs", "Command")
"""The lines in the head of RESULTS.md."""

LATE_LIMIT = 0.7
"""The share of its core that load and upstream may use if response times are to count as a result."""


ABLATION = "## Short ways"
"""The head of the section on the savings of each fast path."""


def section_of(text: str, head: str) -> list[str]:
    """Return the lines of a report's last section without its head. The section must have this head."""
    return text.partition(f"\n{head}\n")[2].strip().splitlines()


def with_section(text: str, head: str, lines: Sequence[str]) -> str:
    """Return a report whose last section, which has this head, is replaced."""
    before = text.partition(f"\n{head}\n")[0].rstrip("\n")
    return "\n".join([before, "", head, "", *lines]) + "\n"


def heading(results: Results) -> list[str]:
    """Return the lines on the origin of the figures."""
    machine, python = results.machine, results.interpreter
    values = (
        machine.date,
        f"{machine.processor}, {machine.cores} cores; each program on one, load and upstream on the other",
        machine.kernel,
        f"load average {machine.load_average:.1f} when the run began; a quiet machine has 0.0",
        f"{python.version}, {python.build}; {python.openssl}",
        ", ".join(f"{name} {version}" for name, version in python.libraries.items()),
        ", ".join(f"{name} {version}" for name, version in results.versions.items()),
        f"`{results.command}`",
    )
    return [f"- {name}: {value}" for name, value in zip(FIELDS, values, strict=True)]


def targets(results: Results) -> list[str]:
    """Return the targets with their results."""
    rows = []
    for aim in AIMS:
        value = aim.value(results)
        shown = "–" if value is None else f"{value:.2f}"
        limits = (aim.before, f"{aim.must:g}", f"{aim.aim:g}")
        rows.append([f"{aim.name} ({aim.unit})", *limits, shown, aim.verdict(results)])
    return [*table(["target", "before", "must", "aim", "found", "verdict"], rows), *disturbance(results)]


def disturbance(results: Results) -> list[str]:
    """Return a warning if other programs disturbed the run."""
    found = [outcome for of_case in results.outcomes.values() for outcome in of_case.values() if outcome.turns]
    judged = [*(outcome.best.disturbed for outcome in found), *(added.disturbed for added in results.added.values())]
    if not any(judged):
        return []
    words = "other programs had the measured one's core for long. Measure again on a quiet machine."
    return ["", f"**These verdicts mean little**: in {sum(judged)} of {len(judged)} results {words}"]


def notes(outcome: Outcome) -> str:
    """Return the notes that a reader of an outcome needs."""
    if not outcome.turns:
        return f"no result: {outcome.failure.splitlines()[0][:60]}"
    said = []
    if outcome.failed:
        said.append(f"{outcome.failed} more turns with a wrong answer")
    if outcome.best.disturbed:
        said.append(f"others had its core {outcome.best.queued / outcome.best.wall:.0%} of the time")
    if outcome.behind:
        said.append("fell behind the pace")
    if outcome.load_bound:
        said.append("rate is the load's")
    return ", ".join(said)


def outcome_row(results: Results, name: str, outcome: Outcome) -> list[str]:
    """Return the row of one program under one case."""
    if not outcome.turns:
        return [name, *["–"] * 6, notes(outcome)]
    ratio = results.times_nginx(outcome.case.name, name)
    best, fastest = outcome.best, outcome.fastest
    saturated = not outcome.case.ask.pace and not outcome.load_bound and fastest.busy >= BUSY
    rate = f"{fastest.rate:,.0f}" if saturated or outcome.case.ask.pace else f"≥ {fastest.rate:,.0f}"
    return [
        name,
        f"{outcome.total:.1f}",
        f"{outcome.user:.1f}",
        f"{outcome.system:.1f}",
        "–" if ratio is None else f"{ratio:.2f}",
        rate,
        f"{best.busy:.0%} / {best.load_busy:.0%}",
        notes(outcome),
    ]


CPU_HEAD = ("CPU µs each", "total", "user", "system", "× nginx", "a second", "busy / load's", "")


def cases(results: Results) -> Iterator[str]:
    """Yield a table for each case."""
    for case in CASES:
        found = results.outcomes.get(case.name)
        if found:
            rows = [outcome_row(results, name, outcome) for name, outcome in found.items()]
            yield from ("", f"### {case.name}", "", detail(case.name), "", *table(CPU_HEAD, rows))


def detail(name: str) -> str:
    """Return the description of a case."""
    case = next(each for each in CASES if each.name == name)
    ask = case.ask
    where = f"{case.connections} connections, {case.dialect}{' over TLS' if case.tls else ''}"
    if not ask.chunks:
        return f"{where}: {ask.prompt:,} bytes asked, {ask.answer:,} bytes answered."
    pace = f"a chunk every {ask.pace} ms" if ask.pace else "all chunks at once"
    return (
        f"{where}: streams of {ask.chunks:,} chunks, {pace}, {ask.flavour} text; the requests' cost is in the chunks'."
    )


def latency(results: Results) -> list[str]:
    """Return the section on the latency above the direct path."""
    rows = []
    for name, added in results.added.items():
        values = [f"{added.median:.2f}", f"{added.slow:.2f}"]
        if added.load_busy > LATE_LIMIT:
            values = ["–", "–"]
        direct = min(added.direct, key=lambda each: each.slow)
        reference = [f"{direct.median * 1e3:.2f}", f"{direct.slow * 1e3:.2f}"]
        busy = f"{added.best.busy:.0%} / {added.load_busy:.0%}"
        note = f"others had its core {added.best.queued:.0%} of the time" if added.disturbed else ""
        rows.append([name, f"{added.rate:,.0f}", *values, *reference, busy, note])
    head = ("ms added to the direct path", "a second", "p50", "p99", "direct p50", "direct p99", "busy / load's", "")
    return table(head, rows)


def memory(results: Results) -> list[str]:
    """Return the section on the memory of each program."""
    rows = []
    for name, kept in results.memory.items():
        stream = "–" if kept.stream is None else f"{kept.stream / KB:.1f}"
        values = (kept.rest.resident, kept.rest.proportional, kept.loaded.resident, kept.loaded.proportional)
        rest = [f"{value / MB:.1f}" for value in values]
        rows.append([name, *rest[:2], stream, *rest[2:]])
    head = [
        "memory",
        "RSS at rest, MB",
        "PSS at rest, MB",
        "KB an idle stream",
        "RSS after load, MB",
        "PSS after load, MB",
    ]
    return table(head, rows)


def workers(results: Results) -> list[str]:
    """Return the section on the memory and the cost of a supervisor with two workers."""
    found = results.workers
    if found is None:
        return []
    rows = []
    for name, outcome in (("one process", found.one), ("two workers", found.two)):
        if outcome.turns:
            rows.append([name, f"{outcome.total:.1f}", f"{outcome.fastest.rate:,.0f}"])
    held = found.held
    words = (
        f"The supervisor with two workers holds {held.proportional / MB:.0f} MB (PSS; RSS {held.resident / MB:.0f} MB)."
    )
    return [
        "",
        "### Two workers, on any core, beside the load",
        "",
        words,
        "",
        *table(["request", "CPU µs", "a second"], rows),
    ]


METHOD = """\
CPU is that of the process's own clock, in the turn in which it was least; the split into user and system time is the
kernel's sample of all turns together. On loopback the sender pays for the receiver: half of the network's work is in
the system time of whoever sends. Every answer was checked, and each stream read to its end. "≥" is a rate at which the
program was not yet busy: it may do more. Before nginx, HAProxy, Envoy and the bare relay the client speaks the vendor's
own dialect; they read no JSON, check no key and log nothing. The bare relay, which is Python's and asyncio's own cost,
knows no HTTP either: it passes bytes on."""


def report(results: Results) -> str:
    """Return the complete report."""
    lines = [TITLE, "", *heading(results), "", "## Targets", "", *targets(results)]
    if results.start is not None:
        lines += ["", f"Ready {results.start:.2f} s after the process was started."]
    if results.added:
        lines += ["", "## Times", "", *latency(results)]
    if results.memory:
        lines += ["", "## Memory", "", *memory(results)]
    lines += workers(results)
    lines += ["", "## CPU", "", METHOD, *cases(results)]
    if results.agents:
        lines += agents_section(results.agents, results.beside)
    return "\n".join(lines) + "\n"


def summary(results: Results) -> str:
    """Return the text that is printed at the end of a run."""
    return "\n".join([*heading(results), "", *targets(results)])


def live_line(case: str, outcome: Outcome, name: str) -> str:
    """Return the line that is printed as soon as a case was measured."""
    if not outcome.turns:
        return f"{case:<36} {name:<10} {notes(outcome)}"
    best = outcome.best
    figures = f"{outcome.total:>9.1f} µs ({outcome.user:.1f} user) {outcome.fastest.rate:>9,.0f}/s"
    return f"{case:<36} {name:<10} {figures} busy {best.busy:.0%}, load {best.load_busy:.0%} {notes(outcome)}".rstrip()
