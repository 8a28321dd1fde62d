"""The program that checks responses, over a real socket to a real process."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from providers.emulation.check_answer import AnswerCheck, CheckKind
from proxy.off_loop.answer_check_process import FAILED, RESPONSE_HEAD, CheckVerdict, check_request, response_head
from tests.proxy.kit.costly_constraints import COSTLY, check_of

ROOT = Path(__file__).parents[3]
QUIET = {**os.environ, "RUST_BACKTRACE": "0"}
NUMBER = check_of({"type": "array", "items": {"type": "integer"}})


class Checker:
    """A process, and this end of its socket."""

    def __init__(self, before: str = "") -> None:
        here, there = socket.socketpair()
        with there:
            code = (
                f"from proxy.off_loop import answer_check_process; {before}answer_check_process.main({there.fileno()})"
            )
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], pass_fds=[there.fileno()], cwd=ROOT, env=QUIET
            )
        here.settimeout(30.0)
        self.link = here
        self.frames = here.makefile("rb")

    def ask(self, check: AnswerCheck, text: str | None) -> tuple[CheckVerdict, str] | None:
        self.link.sendall(check_request(check, text))
        try:
            head = self.frames.read(RESPONSE_HEAD)
        except ConnectionResetError:  # the process ended before it had read everything
            return None
        if not head:
            return None
        verdict, length = response_head(head)
        return verdict, self.frames.read(length).decode()

    def close(self) -> None:
        self.frames.close()
        self.link.close()
        self.process.wait(30.0)


@pytest.fixture
def checker() -> Iterator[Checker]:
    with closing(Checker()) as made:
        yield made


@pytest.mark.smoke
def test_each_question_is_answered_in_turn(checker: Checker) -> None:
    assert checker.ask(NUMBER, None) == (CheckVerdict.KEEPS, "")
    assert checker.ask(NUMBER, "[1, 2]") == (CheckVerdict.KEEPS, "")
    assert checker.ask(NUMBER, '["ü"]') == (CheckVerdict.BREAKS, "it does not satisfy the schema")
    assert checker.ask(NUMBER, "[1") == (CheckVerdict.BREAKS, "it is not JSON")
    pattern = AnswerCheck("guided_regex", CheckKind.PATTERN, b"[a-f]+")
    assert checker.ask(pattern, "abc") == (CheckVerdict.KEEPS, "")
    assert checker.ask(AnswerCheck("response_format", CheckKind.OBJECT), "[]") == (
        CheckVerdict.BREAKS,
        "it is not a JSON object",
    )
    broken = checker.ask(check_of({"pattern": "(?<n>a)\\k<m>"}), None)
    assert broken is not None
    assert broken[0] is CheckVerdict.UNCHECKABLE
    assert "$.pattern" in broken[1]


@pytest.mark.smoke
def test_a_text_without_an_encoding_is_checked_as_the_client_gets_it(checker: Checker) -> None:
    assert checker.ask(NUMBER, "\ud800") == (CheckVerdict.BREAKS, "it is not JSON")


def test_it_ends_when_its_socket_is_closed(checker: Checker) -> None:
    checker.close()
    assert checker.process.returncode == 0


@pytest.mark.parametrize("name", COSTLY)
def test_what_costs_too_much_ends_the_process_or_is_refused(checker: Checker, name: str) -> None:
    check, text = COSTLY[name]
    ends = [-signal.SIGPROF, -signal.SIGABRT, FAILED]
    answer = checker.ask(check, None)
    if answer is not None and answer[0] is CheckVerdict.KEEPS:
        ends.append(0)  # for the memory that the constraint took
        answer = checker.ask(check, text)
    if answer is None:
        assert checker.process.wait(30.0) in ends


def test_a_process_that_keeps_much_memory_takes_no_more_questions() -> None:
    with closing(Checker("answer_check_process.KEPT_BYTES = 1; ")) as checker:
        assert checker.ask(NUMBER, "[1]") == (CheckVerdict.KEEPS, "")
        assert checker.process.wait(30.0) == 0
