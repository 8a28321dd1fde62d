"""Output that plugins print is not part of a command's output or of the access log."""

import asyncio
from pathlib import Path

import orjson
import pytest

from providers.json_types import JsonObject
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import MOCK, port_of
from tests.proxy.plugins.kit import plugin
from tests.support.forked_program import run_program
from tests.support.gateway import running_gateway

TABLE = f"{MOCK}plugins: {{c: {plugin('Chatterbox')}}}\n"
BODY: JsonObject = {"model": "mock/echo", "prompt": "hi"}


@pytest.mark.parametrize(("command", "kind"), [("explain", dict), ("check", list)])
def test_a_command_s_json_is_whole_whatever_a_plugin_prints(tmp_path: Path, command: str, kind: type) -> None:
    table, body = tmp_path / "t.yaml", tmp_path / "b.json"
    table.write_text(TABLE, encoding="utf-8")
    body.write_bytes(orjson.dumps(BODY))
    arguments = [str(body)] if command == "explain" else []
    done = run_program(("-m", "proxy", command, *arguments, "-c", str(table), "--output", "json"))
    assert done.returncode == 0
    assert type(orjson.loads(done.stdout)) is kind
    assert b"made" in done.stderr
    assert b"ended" in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
async def test_the_access_log_is_whole_whatever_a_plugin_prints(tmp_path: Path, workers: int) -> None:
    places = "port: ${PORT}\n  admin:\n    port: ${ADMIN_PORT}\n  drain_grace: 0s\n"
    async with running_gateway(f"{TABLE}server:\n  {places}  workers: {workers}\n", tmp_path) as gateway:
        for _ in range(4):
            assert (await exchange(port_of(gateway.url), request("POST", "/v1/completions", BODY))).status == 200
        assert await gateway.stop() == 0
        log, messages = await asyncio.to_thread(gateway.stdout.read_bytes), gateway.messages()
    assert [orjson.loads(line)["message"] for line in log.splitlines()] == ["request"] * 4
    for word in ("made", "called", "written", "delivered", "closed"):
        assert word in messages
