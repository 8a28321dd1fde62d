"""The demo prints a response streamed over HTTP and commands that work, and fails if the response is incomplete."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy.cli.demo_command import REQUEST, DemoRequestFailed, curl, demo_once, stream
from proxy.cli.main import main
from proxy.cli.terminal import CommandError
from tests.support.gateway import ROOT
from tests.support.http_scripts import body_answer, data_frames, sse_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion_frames
from tests.support.shell import run_shell
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Script

Output = pytest.CaptureFixture[str]


async def streamed(script: Script) -> str:
    """Return the text that the demo would print for a response."""
    async with FakeVendor(script) as vendor:
        return "".join(await asyncio.to_thread(lambda: list(stream(vendor.base_url))))


def test_one_request_is_shown_and_answered_with_its_prompt(capsys: Output) -> None:
    assert demo_once(0) == 0
    assert REQUEST["prompt"] in capsys.readouterr().out.splitlines()


def test_a_team_comes_to_its_limit_and_the_ledger_names_it(capsys: Output) -> None:
    assert demo_once(0) == 0
    shown = capsys.readouterr().out.partition("Team search may make 3 requests a minute, and made 4:\n")[2]
    statuses, message, _, _, heads, row, total = shown.splitlines()
    assert statuses == "200 200 200 429"
    assert message.startswith("Rate limit reached for team search on requests per minute: Limit 3, Used 3, Requested 1")
    assert heads.split()[:5] == ["TEAM", "KEY", "MODEL", "REQUESTS", "ERRORS"]
    assert row.split()[:5] == ["search", "demo", "mock/echo", "4", "1"]
    assert total.split()[0] == "TOTAL"


def test_a_team_that_is_not_kept_to_its_limit_fails_the_demo(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.cli.usage.limit_demo.asked", lambda url, key: (200, ""))
    assert demo_once(0) == 1
    assert "did not enforce a team's limit: a limit of 3 requests a minute let 4 pass" in capsys.readouterr().err


@contextmanager
def occupied(port: int) -> Iterator[None]:
    """Keep the port taken for the block, by this process or by the one that already has it."""
    try:
        server = socket.create_server(("127.0.0.1", port))
    except OSError:
        yield
        return
    with server:
        yield


def test_the_usual_port_when_taken_is_replaced_with_a_note(capsys: Output) -> None:
    with occupied(8080):
        assert demo_once(None) == 0
    assert capsys.readouterr().out.startswith("Port 8080 is taken, so this one is free: ")


@pytest.mark.smoke
def test_a_port_that_was_asked_for_is_not_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(CommandError, match="cannot listen"):
        demo_once(taken.getsockname()[1])


@pytest.mark.smoke
async def test_the_texts_of_a_whole_stream_are_shown() -> None:
    assert await streamed(sse_answer(completion_frames(["one ", "two"]))) == "one two"


BROKEN = {
    "an error status": (body_answer(503, b"busy"), "HTTP 503 busy"),
    "an error within the stream": (
        sse_answer(data_frames({"error": {"message": "the vendor fell over"}})),
        "the vendor fell over",
    ),
    "a stream without its terminator": (sse_answer(completion_frames(["one"])[:-1]), "broke off"),
    "a terminator, no finish reason": (sse_answer([completion_frames(["one"])[0], b"data: [DONE]\n\n"]), "broke off"),
}


@looped("what", BROKEN)
async def test_an_answer_that_is_not_whole_is_a_failure(what: str) -> None:
    script, words = BROKEN[what]
    with pytest.raises(DemoRequestFailed, match=words):
        await streamed(script)


def test_a_failed_request_is_status_1_and_one_line(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REQUEST, "model", "mock/cut-2")
    assert demo_once(0) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("dragoman: "))
    assert line.startswith("dragoman: the gateway did not serve its own request: HTTP 404")


def test_an_output_that_takes_nothing_is_one_line_and_no_fault_of_the_gateway(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.cli.demo_command._free", lambda host, port: 0)
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["demo", "--once"]) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("dragoman: "))
    assert line == "dragoman: cannot write the output: No space left on device"


def test_the_printed_commands_reach_the_gateway_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "proxy", "demo", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        (example,) = re.findall(r"^  (curl .*)$", said, re.MULTILINE)
        (export,) = re.findall(r"^  (export .*)$", said, re.MULTILINE)
        frames = run_shell(example, tmp_path)
        listed = run_shell(f'{export}\ncurl -s "$OPENAI_BASE_URL/models"', tmp_path)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert "Hello" in frames
    assert frames.endswith("data: [DONE]\n\n")
    assert "mock/echo" in listed


def test_the_curl_line_needs_no_escaping_in_a_shell() -> None:
    assert curl("http://h").count("'") == 4
