"""A gateway that a script starts is measured like any other, and is ended with all processes that it started."""

import os
import sys
from pathlib import Path

import pytest

from tests.bench.cases import Case
from tests.bench.measure import Times, measure_case
from tests.bench.programs.program import Other
from tests.bench.programs.scripted import read_ready, scripted
from tests.bench.traffic import KEY, MODEL, Ask
from tests.bench.upstream import running_upstream
from tests.support.looped import looped

RELAY = """\
#!{python}
import asyncio, os

async def copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()

async def relay(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", int(os.environ["UPSTREAM_PORT"]))
    await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", int(os.environ["PORT"]))
    print("ready other/model sk-other", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "start"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


async def test_a_script_s_gateway_answers_the_familys_cases_in_plain_http(tmp_path: Path) -> None:
    program = scripted(f"Relay={written(tmp_path, RELAY.format(python=sys.executable))}")
    with running_upstream(tmp_path) as upstream, program.start(tmp_path, upstream) as target:
        for chunks in (0, 9):
            case = Case("small", Ask(chunks=chunks, pace=1), 2)
            outcomes = await measure_case([target], case, [os.getpid()], Times(1, 0.05, 0.1))
            assert (len(outcomes["Relay"].turns), outcomes["Relay"].failure) == (1, "")
        assert isinstance(target, Other)
        assert (target.model, target.key) == ("other/model", "sk-other")
        assert target.request(Case("no", Ask(), dialect="bedrock")) is None
        assert target.request(Case("no", Ask(), tls=True)) is None
    with pytest.raises(ProcessLookupError):
        os.kill(target.pid, 0)


@looped(("line", "told"), [("ready", (MODEL, KEY)), ("ready a/b\n", ("a/b", KEY)), ("ready a/b sk-1", ("a/b", "sk-1"))])
def test_a_script_may_name_the_model_and_the_key(line: str, told: tuple[str, str]) -> None:
    assert read_ready(line) == told


@looped("line", ["", "no", "ready a b c"])
def test_another_line_is_no_ready(line: str) -> None:
    with pytest.raises(RuntimeError):
        read_ready(line)


@looped("text", ["x", "=x", "name=/nowhere"])
def test_a_peer_is_a_name_and_a_script(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=PATH"):
        scripted(text)
