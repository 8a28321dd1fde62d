"""The replacement for curl sends the given request and prints the response."""

import asyncio

import pytest

from tests.support import curl
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor

Output = pytest.CaptureFixture[str]


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(curl.main, list(arguments))


async def test_a_body_is_posted_with_its_headers(capsys: Output) -> None:
    async with FakeVendor(json_answer(200, {"ok": True})) as vendor:
        assert await run("-sN", "-H", "x-one: 1", f"{vendor.base_url}/path", "-d", "{}") == 0
    (received,) = vendor.requests
    assert (received.method, received.target, received.body) == ("POST", "/path", b"{}")
    assert received.header("x-one") == "1"
    assert capsys.readouterr().out == '{"ok":true}'


async def test_a_body_is_a_form_unless_a_header_says_otherwise() -> None:
    async with FakeVendor(json_answer(200, {})) as vendor:
        await run("-s", vendor.base_url + "/", "-d", "{}")
        await run("-s", vendor.base_url + "/", "-d", "{}", "-H", "Content-Type: application/json")
    types = [request.header("content-type") for request in vendor.requests]
    assert types == ["application/x-www-form-urlencoded", "application/json"]


async def test_an_error_status_fails_only_when_asked(capsys: Output) -> None:
    async with FakeVendor(json_answer(404, {"ok": False})) as vendor:
        assert await run("-s", vendor.base_url + "/") == 0
        assert await run("-sf", "-X", "PUT", vendor.base_url + "/") == 22
    assert [request.method for request in vendor.requests] == ["GET", "PUT"]
    assert capsys.readouterr().out == '{"ok":false}'
