"""Targets and their verdicts, from results as values."""

from dataclasses import replace

import pytest

from tests.bench.cases import REQUEST
from tests.bench.kit import outcome, results
from tests.bench.results import AIMS

FOUND = {
    "streamed chunk, 20 ms, 300 streams": (2.4, "missed"),
    "streamed chunk, 20 ms, 60 streams": (2.0, "must met"),
    "streamed chunk, 60 streams, TLS to the vendor": (3.0, "missed"),
    "request": (6.0, "aim met"),
    "unpaced stream of 1,000 chunks, user time": (3.0, "must met"),
    "idle relayed stream": (18.0, "must met"),
    "supervisor and two workers, PSS": (90.0, "must met"),
    "p99 added at half load": (1.5, "must met"),
    "native dialects' chunk, 300 streams": (1.25, "must met"),
    "CPU a request, two workers": (1.05, "aim met"),
}


def test_every_target_is_found_and_judged() -> None:
    found = results()
    for aim in AIMS:
        value, verdict = FOUND[aim.name]
        assert aim.value(found) == pytest.approx(value), aim.name
        assert aim.verdict(found) == verdict, aim.name
    assert {aim.name for aim in AIMS} == FOUND.keys()


def test_what_was_not_measured_is_not_judged() -> None:
    bare = replace(results(), outcomes={}, added={}, memory={}, workers=None, start=None)
    assert {aim.verdict(bare) for aim in AIMS} == {"not measured"}


def test_an_outcome_without_turns_is_no_result() -> None:
    failed = {REQUEST: {"gateway": replace(outcome(REQUEST, 1), turns=()), "nginx": outcome(REQUEST, 1)}}
    assert replace(results(), outcomes=failed).times_nginx(REQUEST) is None
