"""The gateway's process is started, watched and stopped as by an operator."""

import signal
from pathlib import Path

import aiohttp
import pytest

from tests.support.forked_program import Launch, forked, started
from tests.support.gateway import SERVER, free_ports, ports_in_turn, running_gateway, told_of, with_server

TABLE = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\n"
ASK = {"model": "mock/echo", "prompt": "hi"}


async def ask(url: str, path: str = "/v1/completions") -> int:
    async with aiohttp.ClientSession() as http, http.post(url + path, json=ASK) as answer:
        await answer.read()
        return answer.status


@pytest.mark.parametrize("launch", [started, forked])
async def test_it_serves_logs_and_stops(launch: Launch, tmp_path: Path) -> None:
    async with running_gateway(TABLE, tmp_path, launch=launch) as gateway:
        assert await ask(gateway.url) == 200
        (line,) = await gateway.logged(1)
        assert (line["status"], line["model"]) == (200, "mock/echo")
        assert sum(v for k, v in (await gateway.metrics()).items() if k.startswith("dragoman_requests_total")) == 1
        assert await gateway.stop() == 0


async def test_a_reload_takes_a_good_table_and_keeps_it_over_a_bad_one(tmp_path: Path) -> None:
    async with running_gateway(TABLE, tmp_path) as gateway:
        await gateway.reload("version: 1\nvendors: {mock: {}}\nmodels: {mock/other: {}}\n")
        assert await ask(gateway.url) == 404
        await gateway.reload(TABLE)
        assert await ask(gateway.url) == 200
        await gateway.reload("version: nonsense\n")
        assert await ask(gateway.url) == 200
        assert (await gateway.metrics())["dragoman_config_last_reload_successful"] == 0


async def test_a_gateway_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="version"):
        async with running_gateway("version: nonsense\n", tmp_path):
            pass


async def test_a_gateway_that_ends_by_itself_fails_the_test(tmp_path: Path) -> None:
    async def crash() -> None:
        async with running_gateway(TABLE, tmp_path) as gateway:
            gateway.process.send_signal(signal.SIGKILL)
            gateway.process.wait()

    with pytest.raises(AssertionError, match="by itself"):
        await crash()


def test_a_line_that_counts_requests_is_about_all_of_them() -> None:
    assert told_of([{"message": "request"}, {"message": "refused at the door", "count": 3}]) == 4


def test_the_ports_are_added_below_a_table_without_a_server() -> None:
    assert with_server(TABLE) == TABLE + SERVER
    assert with_server(TABLE.rstrip("\n")) == TABLE + SERVER
    own = "version: 1\nserver: {port: 1}\n"
    assert with_server(own) == own


def test_free_ports_differ_and_no_other_process_gets_one_of_them() -> None:
    mine = free_ports(5)
    assert len(set(mine)) == 5
    # A lock belongs to an open file, so a second one in this process counts as another process's.
    theirs = ports_in_turn()
    assert {next(theirs) for _ in range(500)}.isdisjoint(mine)
    theirs.close()
