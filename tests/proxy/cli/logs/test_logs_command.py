"""`dragoman logs` as a process: it reads a file or a pipe, follows a file, and ends if its reader closes the pipe."""

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from proxy.cli.logs.choose_lines import LogsOptions
from proxy.cli.logs.logs_command import LINE_FORMS, batches, logs, terminal_form
from proxy.cli.logs.show_lines import coloured, plain
from proxy.telemetry.access_log import request_line
from tests.proxy.telemetry.test_line_fields import full_record

ROOT = Path(__file__).resolve().parents[4]
Output = pytest.CaptureFixture[str]


def line(team: str) -> bytes:
    record = full_record()
    record.team = team
    return request_line(record, record.cost) + b"\n"


class Terminal(io.StringIO):
    """A stream that reports itself as a terminal."""

    def isatty(self) -> bool:
        return True


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "proxy", "logs", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.smoke
def test_a_file_is_shown_filtered_to_people_and_to_programs(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "a.log"
    data = line("data")
    path.write_bytes(line("search") + data + b"other\n")
    assert logs(str(path), LogsOptions(), LINE_FORMS[False]) == 0
    assert [text.count("fast -> a/m/us") for text in capsys.readouterr().out.splitlines()] == [1, 0, 1, 0, 0]
    assert logs(str(path), LogsOptions(team="data"), LINE_FORMS[True]) == 0
    assert capsys.readouterr().out.encode() == data


@pytest.mark.smoke
def test_an_id_that_no_request_has_is_answered_with_no(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(line("data"))
    here = full_record().request_id
    for options, status in ((LogsOptions(id=here), 0), (LogsOptions(id="gone"), 1), (LogsOptions(team="gone"), 0)):
        assert logs(str(path), options, LINE_FORMS[True]) == status
        captured = capsys.readouterr()
        assert (captured.out == "", "no such request" in captured.err) == (options.id != here, status == 1)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("env", "paint"),
    [({}, coloured), ({"NO_COLOR": "1"}, plain), ({"TERM": "dumb"}, plain), ({"NO_COLOR": ""}, coloured)],
)
def test_a_terminal_has_a_width_and_colours_unless_it_wants_none(
    env: dict[str, str], paint: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "61")
    form = terminal_form(Terminal(), env)
    assert (form.paint, form.width) == (paint, 61)
    assert (terminal_form(io.StringIO(), env).paint, terminal_form(io.StringIO(), env).width) == (plain, 0)


def test_a_file_is_followed_from_its_end_or_with_a_time_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x\n" * 30)
    assert len(next(iter(batches(str(path), LogsOptions(follow=True))))) == 10
    assert len(next(iter(batches(str(path), LogsOptions(follow=True, since="1d"))))) == 30


def test_a_pipe_is_shown_as_its_lines_come() -> None:
    with started("--json", "--team", "search") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        os.write(process.stdin.fileno(), line("data") + line("search"))
        assert orjson.loads(process.stdout.readline())["team"] == "search"
        out, err = process.communicate()
    assert (out, err, process.returncode) == (b"", b"", 0)


def test_a_followed_file_shows_what_is_added_and_a_reader_may_leave(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(line("first"))
    with started(str(path), "-f") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"first/ci" in process.stdout.readline()
        process.stdout.readline()
        path.rename(tmp_path / "a.log.1")
        path.write_bytes(line("second"))
        assert b"second/ci" in process.stdout.readline()
        process.stdout.close()
        with path.open("ab") as log:
            log.write(line("third"))
        assert process.wait(30) == 141
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("arguments", "told"), [(["no.log"], b"cannot read no.log"), (["-", "--status", "9"], b"--status takes")]
)
def test_what_cannot_be_done_is_one_line(arguments: Sequence[str], told: bytes) -> None:
    with started(*arguments) as process:
        out, err = process.communicate()
    assert (out, process.returncode > 0, err.count(b"\n")) == (b"", True, 1)
    assert told in err
