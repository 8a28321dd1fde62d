"""The cases: each of the measured loads once, with every target's case."""

from collections import Counter

from tests.bench.cases import (
    AGENTS,
    ANTHROPIC,
    BEDROCK,
    CASES,
    REQUEST,
    STREAMS_60,
    STREAMS_300,
    TLS_60,
    UNPACED,
    chosen,
)


def test_each_name_occurs_once() -> None:
    assert {name: times for name, times in Counter(case.name for case in CASES).items() if times > 1} == {}


def test_every_run_has_what_has_a_target() -> None:
    native = [f"{dialect} {STREAMS_300}" for dialect in (ANTHROPIC, BEDROCK)]
    wanted = [REQUEST, STREAMS_60, STREAMS_300, TLS_60, UNPACED, *native]
    agents = [case.name for case in CASES if case.name.startswith(AGENTS) and case.core]
    assert [case.name for case in chosen(full=False, words=())] == wanted + agents


def test_a_full_run_has_every_dialect_over_tls_and_not_whole_and_streamed() -> None:
    found = {(case.dialect, case.tls, case.unit) for case in chosen(full=True, words=())}
    wanted = {
        (dialect, tls, unit)
        for dialect in ("openai", "anthropic", "bedrock")
        for tls in (False, True)
        for unit in ("request", "chunk")
    }
    assert found == wanted


def test_every_dialect_has_each_size_and_pace() -> None:
    for dialect in ("openai", "anthropic", "bedrock"):
        asks = [case.ask for case in CASES if case.dialect == dialect and not case.name.startswith(AGENTS)]
        assert {(ask.answer, ask.prompt) for ask in asks} == {(1200, 2048), (100_000, 2048), (1200, 500_000)}
        assert {(65, 20), (65, 0), (1000, 0)} <= {(ask.chunks, ask.pace) for ask in asks}


def test_words_choose_cases_by_name() -> None:
    assert {case.name for case in chosen(full=False, words=("TLS",))} == {
        case.name for case in CASES if "TLS" in case.name
    }
