"""The report: its head describes the origin of the figures, its tables contain them, and invalid results are marked."""

from dataclasses import replace

from tests.bench.cases import REQUEST, STREAMS_300
from tests.bench.kit import PYTHON, outcome, results
from tests.bench.latency import Spent
from tests.bench.measure import Outcome
from tests.bench.report import ABLATION, FIELDS, TITLE, live_line, notes, report, section_of, summary, with_section
from tests.bench.run import RESULTS
from tests.support.looped import looped


def test_the_head_says_machine_versions_and_date() -> None:
    head = report(results()).partition("## Targets")[0]
    assert head.startswith(TITLE)
    values = ("2026-11-23", "a processor, 2 cores", "6.1", "0.1", "optimised", "aiohttp", "nginx 1.22.1", "--full")
    for field, value in zip(FIELDS, values, strict=True):
        (line,) = [each for each in head.splitlines() if each.startswith(f"- {field}: ")]
        assert value in line


def test_a_python_that_was_not_optimised_is_told_plainly() -> None:
    plain = replace(results(), interpreter=replace(PYTHON, arguments="'--enable-shared'"))
    assert "NOT OPTIMISED" in summary(plain)
    assert "NOT OPTIMISED" not in summary(results())


def test_every_part_is_in_the_report() -> None:
    text = report(results())
    for part in ("## Targets", "## Times", "## Memory", "## Two workers", "## CPU", f"### {REQUEST}", "Ready 0.40 s"):
        assert part in text
    assert "| gateway     | 120.0 | 90.0 |   30.0 |    6.00 |" in text
    assert "| streamed chunk, 20 ms, 300 streams (× nginx)" in summary(results())


def test_a_rate_below_what_a_program_can_do_is_a_least() -> None:
    text = report(results())
    assert "≥ 1,000" in text
    busy = {REQUEST: {"gateway": outcome(REQUEST, 990.0)}}
    assert "≥" not in report(replace(results(), outcomes=busy)).partition(f"### {REQUEST}")[2]


def cells(text: str, first: str) -> list[list[str]]:
    """Return the rows of all tables that begin with this cell."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line]
    return [row for row in rows if row[0] == first]


def test_times_of_a_busy_load_are_no_result() -> None:
    late = replace(results().added["gateway"], through=[Spent([0.5], 0.95)])
    times = report(results()).partition("## Times")[2].partition("##")[0]
    assert cells(times, "gateway")[0][1:4] == ["1,000", "1.00", "1.50"]
    times = report(replace(results(), added={"gateway": late})).partition("## Times")[2].partition("##")[0]
    assert cells(times, "gateway")[0][1:4] == ["1,000", "–", "–"]


def late(found: Outcome) -> Outcome:
    return replace(found, turns=[replace(each, queued=0.4) for each in found.turns])


@looped(
    ("found", "words"),
    [
        (Outcome(outcome(REQUEST, 1).case, [], 2, "HTTP/1.1 503 x\nmore"), "no result: HTTP/1.1 503 x"),
        (outcome(STREAMS_300, 1), "fell behind the pace"),
        (replace(outcome(REQUEST, 1), failed=1), "1 more turns with a wrong answer"),
        (outcome(REQUEST, 1), ""),
        (late(outcome(REQUEST, 1)), "others had its core 40% of the time"),
    ],
)
def test_what_must_be_known_of_an_outcome_is_noted(found: Outcome, words: str) -> None:
    assert notes(found) == words
    assert words in live_line("case", found, "gateway")


def test_a_machine_that_was_not_quiet_is_told() -> None:
    assert "mean little" not in report(results())
    noisy = {REQUEST: {"gateway": late(outcome(REQUEST, 9)), "nginx": outcome(REQUEST, 1)}}
    assert "in 1 of 3 results" in summary(replace(results(), outcomes=noisy))
    times = replace(results().added["gateway"], through=[Spent([0.002], 0.2, 0.5, 0.1)])
    told = report(replace(results(), added={"gateway": times}))
    assert "others had its core 10% of the time" in told
    assert "mean little" in told


def test_the_committed_report_says_what_its_figures_come_from() -> None:
    if RESULTS.exists():
        head = RESULTS.read_text(encoding="utf-8").partition("## Targets")[0]
        assert head.startswith(TITLE)
        assert [field for field in FIELDS if f"\n- {field}: " not in head] == []


def test_the_last_section_is_replaced() -> None:
    once = with_section("# A\n\ntext\n", ABLATION, ["one"])
    assert section_of(once, ABLATION) == ["one"]
    assert with_section(once, ABLATION, ["two"]) == f"# A\n\ntext\n\n{ABLATION}\n\ntwo\n"
    assert section_of("# A\n", ABLATION) == []
