"""The addresses of the command line override the config file's, and a port that is taken is reported in one line."""

import asyncio
import os
import pty
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from pydantic import ValidationError

from config.problem import ConfigError
from config.sections.server_section import ServerSection
from proxy.cli.command_parser import MAX_WORKERS
from proxy.cli.main import main
from proxy.cli.serve_command import ServeOptions, addresses, cannot_listen, serve
from proxy.cli.terminal import CommandError
from proxy.process.assemble_app import Addresses
from proxy.process.load_table import Source
from proxy.workers.usable_cores import usable_cores
from tests.support.forked_program import forked
from tests.support.gateway import ROOT, running_gateway

Writer = Callable[[str], Source]

TABLE = """\
version: 1
server: {host: 127.0.0.2, port: 8000, admin: {port: 9000}}
vendors: {mock: {}}
models: {mock/*: {}}
"""


def listening(source: Source, port: int | None) -> Addresses:
    return addresses(replace(source, port=port), source.load(), ServeOptions())


@pytest.mark.smoke
def test_the_tables_addresses_are_used(source: Writer) -> None:
    assert listening(source(TABLE), None) == Addresses("127.0.0.2", 8000, "127.0.0.1", 9000)


@pytest.mark.smoke
def test_the_command_line_beats_the_table(source: Writer) -> None:
    written = source(TABLE)
    chosen = Source(written.path, written.env, host="127.0.0.3")
    assert listening(chosen, 0) == Addresses("127.0.0.3", 0, "127.0.0.1", 9000)


def test_the_command_line_chooses_the_operators_port_too(source: Writer) -> None:
    written = source(TABLE)
    wanted = ServeOptions(admin_port=0)
    assert addresses(written, written.load(), wanted) == Addresses("127.0.0.2", 8000, "127.0.0.1", 0)


def test_an_open_table_is_refused_beyond_loopback_unless_insisted_on(source: Writer) -> None:
    path = source(TABLE).path
    with pytest.raises(ConfigError, match="without teams"):
        Source(path, {}, host="0.0.0.0").load()
    assert listening(Source(path, {}, True, "0.0.0.0"), None).host == "0.0.0.0"


def test_a_place_that_cannot_be_had_is_one_line_that_names_it(source: Writer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"cannot listen on 127\.0\.0\.1:{port} .*in use"):
            serve(Source(source(TABLE).path, {}, host="127.0.0.1", port=port), ServeOptions())
    with pytest.raises(CommandError, match=r"cannot listen on 192\.0\.2\.1:0 and 127\.0\.0\.1:9000: "):
        serve(Source(source(TABLE).path, {}, True, "192.0.2.1", port=0), ServeOptions())


def test_an_error_without_a_text_of_its_own_is_shown_whole() -> None:
    listen = Addresses("h", 1, "a", 2)
    assert str(cannot_listen(listen, OSError("no luck"))) == "cannot listen on h:1 and a:2: no luck"


def test_the_program_says_one_line_and_fails_when_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "proxy", "serve", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert done.returncode == 1
    _, line = done.stderr.splitlines()
    assert line.startswith("dragoman: cannot listen on 127.0.0.1:")


async def test_the_program_serves_a_table_until_it_is_told_to_end(tmp_path: Path) -> None:
    body = {"model": "mock/echo", "prompt": "hello"}
    async with (
        running_gateway("version: 1\nvendors: {mock: {}}\nmodels: {mock/*: {}}\n", tmp_path) as gateway,
        aiohttp.ClientSession() as http,
        http.post(f"{gateway.url}/v1/completions", json=body) as answer,
    ):
        assert (await answer.json())["choices"][0]["text"] == "hello"
        assert await gateway.stop() == 0


@asynccontextmanager
async def serving(folder: Path, server: str, *arguments: str) -> AsyncIterator[list[str]]:
    """Run the command until it listens, and yield the lines that it has logged by then. The command must end with
    status 0.
    """
    path, log = folder / "t.yaml", folder / "stderr.log"
    path.write_text(f"version: 1\nvendors: {{mock: {{}}}}\nmodels: {{mock/*: {{}}}}\nserver: {{{server}}}\n")
    with log.open("wb") as err:
        process = forked(("-m", "proxy", "serve", "-c", str(path), *arguments), {}, err, err)
    try:
        while "listening on" not in (told := log.read_text()) or not told.endswith("\n"):
            assert process.poll() is None, told
            await asyncio.sleep(0.005)
        yield told.splitlines()
        process.terminate()
        assert await asyncio.to_thread(process.wait) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_listener_for_all_addresses_is_told_and_warned_of_if_open(tmp_path: Path, workers: str) -> None:
    wide = ["--insecure-open", "--host", "0.0.0.0", "--port=0", "--admin-port=0", f"--workers={workers}"]
    async with serving(tmp_path, "drain_grace: 0s", *wide) as told:
        found = re.search(r"listening on (http://0\.0\.0\.0:\d+) \(all addresses\)", told[-1])
        assert found is not None
        async with aiohttp.ClientSession() as http, http.get(found[1] + "/health") as answer:
            assert answer.status == 200
    (warning,) = [line for line in told if "there are no teams: anyone who reaches this address can use" in line]
    assert '"level":"warning"' in warning


@pytest.mark.parametrize(("given", "count"), [([], 2), (["--workers", "3"], 3), (["--workers", "1"], 0)])
async def test_the_command_line_says_how_many_processes_serve(tmp_path: Path, given: list[str], count: int) -> None:
    async with serving(tmp_path, "port: 0, workers: 2, drain_grace: 0s, admin: {port: 0}", *given) as lines:
        first, *told, last = lines
    cores = usable_cores()
    assert f"serving the configuration {tmp_path / 't.yaml'}" in first
    assert (f"with {count} workers" in last) == (count > 0)
    assert [f"{count} workers on {cores} cores: more workers than cores" in each for each in told] == [True] * (
        count > cores
    )


@pytest.mark.parametrize("given", [[], ["--workers", "auto"]])
async def test_as_many_processes_serve_as_there_are_cores_where_that_is_asked(tmp_path: Path, given: list[str]) -> None:
    server = f"port: 0, workers: {1 if given else 'auto'}, drain_grace: 0s, admin: {{port: 0}}"
    async with serving(tmp_path, server, *given) as (_, told, last):
        cores = usable_cores()
        assert f"workers: auto is {cores}, the number of cores that may be used" in told
        assert (f"with {cores} workers" in last) == (cores > 1)


def test_as_many_as_the_cores_may_be_one_and_is_then_one_process(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("version: 1\nvendors: {mock: {}}\nmodels: {mock/*: {}}\nserver: {drain_grace: 0s}\n")
    command = [sys.executable, "-m", "proxy", "serve", "-c", str(path), "--port=0", "--admin-port=0", "--workers=auto"]
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {core})
    ) as process:
        assert process.stderr is not None
        told = [process.stderr.readline() for _ in range(3)]
        process.terminate()
    assert process.returncode == 0
    assert b"workers: auto is 1, the number of cores that may be used" in told[1]
    assert b"listening on" in told[2]
    assert b"workers" not in told[2]


@pytest.mark.parametrize("given", ["0", "257", "-1", "two", "1.5", ""])
def test_a_number_of_workers_that_cannot_be_is_wrong_usage(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["serve", f"--workers={given}"])
    assert caught.value.code == 2
    assert f"{given!r} is not a number of workers: 1 to 256, or auto" in capsys.readouterr().err


def test_a_table_may_ask_for_as_many_workers_as_the_command_line() -> None:
    assert [ServerSection.model_validate({"workers": count}).workers for count in (1, MAX_WORKERS, "auto")] == [
        *(1, MAX_WORKERS, "auto")
    ]
    with pytest.raises(ValidationError, match="less than or equal to 256"):
        ServerSection.model_validate({"workers": MAX_WORKERS + 1})


def terminal_output(table: Path, piped: bool) -> str:
    """Return the first log line of a gateway whose standard error is a terminal, and its standard output unless it is
    piped.
    """
    table.write_text("version: 1\nvendors: {mock: }\nmodels: {mock/*: }\n", encoding="utf-8")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "proxy", "serve", str(table), "--port=0", "--admin-port=0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE if piped else theirs, stderr=theirs, stdin=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        with open(ours, "rb", buffering=0) as terminal:
            line = b""
            while not line.endswith(b"\n"):
                line += terminal.read(1)
            process.kill()
    return line.decode()


@pytest.mark.parametrize("piped", [False, True])
def test_a_person_at_a_terminal_reads_text_and_a_program_json(piped: bool, tmp_path: Path) -> None:
    line = terminal_output(tmp_path / "t.yaml", piped)
    assert "serving the configuration" in line
    assert line.startswith("{") == piped
