"""The defaults agree with the guide to the table and with those of the providers package."""

from pathlib import Path

import yaml

from config import defaults
from config.defaults import duration, size
from providers.target import DEFAULT_SCHEMES
from tests.support.looped import looped

README = (Path(__file__).parents[2] / "config" / "README.md").read_text(encoding="utf-8")


@looped(
    ("seconds", "text"),
    [
        (5.0, "5s"),
        (0.5, "0.5s"),
        (600.0, "600s"),
        (3600.0, "1h"),
        (7200, "2h"),
        (5400.0, "5400s"),
        (86400.0, "1d"),
        (34_560_000.0, "400d"),
        (0.0, "0s"),
    ],
)
def test_a_duration_is_shown_as_a_table_writes_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@looped(("number", "text"), [(1024, "1KiB"), (2**25, "32MiB"), (2**30, "1GiB"), (1500, "1500 bytes"), (0, "0 bytes")])
def test_a_size_is_shown_as_a_table_writes_it(number: int, text: str) -> None:
    assert size(number) == text


@looped(
    ("limit", "text"),
    [
        ("connect", duration(defaults.CONNECT_TIMEOUT)),
        ("first_event", duration(defaults.FIRST_EVENT_TIMEOUT)),
        ("answer", duration(defaults.ANSWER_TIMEOUT)),
        ("idle", duration(defaults.IDLE_TIMEOUT)),
        ("total", duration(defaults.TOTAL_TIMEOUT)),
        ("keep_alive", duration(defaults.KEEP_ALIVE)),
        ("progress`, `stream", f"{duration(defaults.PROGRESS_TIMEOUT)}, {duration(defaults.STREAM_TIMEOUT)}"),
    ],
)
def test_the_readme_gives_the_timeouts_that_are_built_in(limit: str, text: str) -> None:
    line = next(line for line in README.splitlines() if line.startswith(f"| `{limit}` | "))
    assert line.rpartition(" | ")[2].removesuffix(" |").split(", or ")[0] == text


def test_the_example_of_the_readme_writes_the_defaults_of_failover() -> None:
    (block,) = [block for block in README.split("```yaml\n")[1:] if "circuit_breaker: {" in block.partition("```")[0]]
    written = yaml.safe_load(block.partition("```")[0])["defaults"]
    budget = {"share": defaults.RETRY_BUDGET_SHARE, "per_second": defaults.RETRY_BUDGET_PER_SECOND}
    assert written["retries"] == {
        "attempts": defaults.ATTEMPTS,
        "safety": defaults.RETRY_SAFETY,
        "budget": budget | {"least": defaults.RETRY_BUDGET_LEAST},
    }
    breaker = written["circuit_breaker"]
    assert (breaker["failures"], breaker["cooldown"]) == (defaults.BREAKER_FAILURES, duration(defaults.COOLDOWN))


def test_both_halves_let_the_same_schemes_of_media_pass() -> None:
    assert frozenset(defaults.MEDIA_SCHEMES) == DEFAULT_SCHEMES
