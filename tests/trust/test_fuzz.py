"""The fuzzers find broken parsers, repeat their inputs, and stop; and no parser breaks at once.

The tests do not search for long.
"""

import time
from pathlib import Path
from random import Random

import pytest

from tests.trust import fuzz
from tests.trust.fuzz_mutate import LONGEST, Mutator
from tests.trust.fuzz_targets import TARGETS, Target


def test_the_same_seed_makes_the_same_inputs_and_another_seed_others() -> None:
    seeds = [b'data: {"a": [1, {"b": "c"}]}\n\n', b"x"]
    first, again, other = (
        [mutator.input() for _ in range(200)] for mutator in (Mutator(Random(seed), seeds) for seed in (1, 1, 2))
    )
    assert first == again != other
    assert len(set(first)) > 150
    assert max(map(len, first)) <= LONGEST


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_parser_breaks_at_once(target: Target, tmp_path: Path) -> None:
    assert target.seeds
    for seed in target.seeds[:20]:
        target.run(seed)
    assert fuzz.for_runs(target.name, 1, tmp_path, 50).found == ()


def test_an_input_that_breaks_a_parser_is_kept(tmp_path: Path) -> None:
    def fragile(data: bytes) -> None:
        if b"\x00" in data:
            raise KeyError("zero")

    fuzzed = fuzz.fuzz(Target("fragile", fragile, [b"abc"]), 1, tmp_path, lambda runs, _: runs < 100_000)
    assert len(fuzzed.found) == fuzz.MOST_FOUND
    assert fuzzed.runs < 100_000
    assert all("KeyError: 'zero'" in line for line in fuzzed.found)
    assert all(b"\x00" in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(("works", "kept"), [(True, 1), (False, 0)])
def test_an_input_that_takes_much_work_is_kept_and_none_for_which_the_machine_had_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool, kept: int
) -> None:
    def slow(data: bytes) -> None:
        end = time.thread_time() + 0.02
        while works and time.thread_time() < end:
            pass
        time.sleep(0 if works else 0.02)

    monkeypatch.setattr(fuzz, "SLOW", 0.01)
    assert len(fuzz.fuzz(Target("slow", slow, [b"abc"]), 1, tmp_path, lambda runs, _: runs < 1).found) == kept


def test_the_command_stops_by_itself_and_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["sse", "key", "--seconds", "0.2", "--seed", "3", "--folder", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["sse", "key", "stopped after 0.2 s, seed 3"]
    assert list(tmp_path.iterdir()) == []


def test_a_parser_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fuzz.main(["nobody"])
    assert "no such parser: nobody" in capsys.readouterr().err


def test_the_figure_counts_over_all_parsers(tmp_path: Path) -> None:
    result = fuzz.parsers(tmp_path, 20)
    assert result.good, result.value
    assert result.value.startswith("0 unexpected exceptions in ")
