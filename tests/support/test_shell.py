"""Pasted lines find our program and a curl, and a line that fails is reported."""

from pathlib import Path

import pytest

from tests.support.shell import run_shell


def test_our_program_is_on_the_path(tmp_path: Path) -> None:
    assert run_shell("dragoman version", tmp_path).startswith("dragoman ")


def test_variables_are_seen_and_curl_is_there(tmp_path: Path) -> None:
    assert run_shell('command -v curl >/dev/null; echo "$WORD"', tmp_path, {"WORD": "hello"}) == "hello\n"


def test_a_line_that_fails_stops_the_rest_and_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 2"):
        run_shell("dragoman nonsense\necho never", tmp_path)
