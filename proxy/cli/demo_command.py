"""`dragoman demo`: run the gateway on its embedded configuration. Show one streamed completion over HTTP, and a team
that reaches its limit."""

import asyncio
import http.client
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import Any
from urllib.parse import urlsplit

from proxy.cli.serve_command import cannot_listen, require_sound_http
from proxy.cli.terminal import FAILED, Style, paint
from proxy.cli.usage.limit_demo import LimitNotShown, show_team_limit
from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from proxy.process.shutdown import Shutdown, drain, run_unless
from proxy.telemetry.log_writer import unbuffered
from proxy.version import VERSION

PATH = "/v1/completions"
REQUEST = {
    "model": "mock/echo+typed",
    "prompt": "One endpoint, one request language, one completion shape, any vendor.",
    "max_tokens": 64,
    "stream": True,
}
EXAMPLE = {"model": "mock/echo", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}

RESPONSE_TIMEOUT = 30.0
"""Seconds without a byte after which the demo's own request fails."""

DRAIN_SECONDS = 5.0
"""The seconds that requests in flight may still take after Ctrl-C."""


class DemoRequestFailed(Exception):
    """The demo's own request failed. The message describes the response."""


def demo(port: int | None) -> int:
    """Send one request to the gateway and show a team that reaches its limit. Then serve until Ctrl-C."""
    return asyncio.run(_serving(port))


def demo_once(port: int | None) -> int:
    """Send one request to the gateway. Return 0 if its response was complete and the team reached its limit."""
    return asyncio.run(_single(port))


async def _serving(port: int | None) -> int:
    async with _gateway(port) as app:
        shutdown = Shutdown()
        shutdown.listen()
        status = await _run_demo_requests(app)
        if status == 0:
            _introduce(app)
            await shutdown.requested.wait()
            await run_unless(drain(app.front, 0.0, DRAIN_SECONDS), shutdown.urgent)
    return status


async def _single(port: int | None) -> int:
    async with _gateway(port) as app:
        return await _run_demo_requests(app)


@asynccontextmanager
async def _gateway(port: int | None) -> AsyncIterator[WholeGateway]:
    """Run the gateway on the embedded configuration. Raises CommandError if it cannot or must not listen."""
    require_sound_http()
    source = Source(None, os.environ, log="text")
    table = source.load()
    server = table.loaded.config.server
    chosen = _free(server.host, server.port) if port is None else port
    admin = server.admin
    listen = Addresses(server.host, chosen, admin.host, _free(admin.host, admin.port))
    async with AsyncExitStack() as stack:
        try:
            app = await stack.enter_async_context(running(source, table, listen, unbuffered(sys.stderr)))
        except OSError as error:
            raise cannot_listen(listen, error) from None
        if port is None and chosen != server.port:
            print(f"Port {server.port} is taken, so this one is free: {urlsplit(app.url).port}")
        yield app


def _free(host: str, port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return 0
    return port


async def _run_demo_requests(app: WholeGateway) -> int:
    print(paint(f"Dragoman {VERSION} on {app.url}: embedded configuration, no key, no network", Style.BOLD))
    print(paint(f"\nPOST {PATH} {json.dumps(REQUEST)}", Style.DIM))
    try:
        await asyncio.to_thread(_show, app.url)
    except DemoRequestFailed as error:
        print(f"\ndragoman: the gateway did not serve its own request: {error}", file=sys.stderr)
        return FAILED
    try:
        await show_team_limit()
    except LimitNotShown as error:
        print(f"\ndragoman: the gateway did not enforce a team's limit: {error}", file=sys.stderr)
        return FAILED
    return 0


def _show(url: str) -> None:
    for text in stream(url):
        print(text, end="", flush=True)
    print()


def stream(url: str) -> Iterator[str]:
    """Yield the texts of the demo's response. Raises DemoRequestFailed unless the stream is complete."""
    try:
        yield from _received(url)
    except (OSError, http.client.HTTPException) as error:
        raise DemoRequestFailed(str(error)) from None


def _received(url: str) -> Iterator[str]:
    address = urlsplit(url)
    with closing(
        http.client.HTTPConnection(address.hostname or "", address.port, timeout=RESPONSE_TIMEOUT)
    ) as connection:
        connection.request("POST", PATH, json.dumps(REQUEST), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise DemoRequestFailed(f"HTTP {response.status} {response.read(2000).decode('utf-8', 'replace')}")
        finished = False
        for line in response:
            data = line.removeprefix(b"data: ").strip()
            if data == b"[DONE]" and finished:
                return
            for choice in _choices(json.loads(data)) if data.startswith(b"{") else ():
                finished = finished or choice["finish_reason"] is not None
                yield choice["text"]
    raise DemoRequestFailed("the stream broke off")


def _choices(event: dict[str, Any]) -> list[dict[str, Any]]:  # Any: JSON from the wire
    if "error" in event:
        raise DemoRequestFailed(f"the stream broke off: {event['error']['message']}")
    choices: list[dict[str, Any]] = event["choices"]
    return choices


def _introduce(app: WholeGateway) -> None:
    print(
        f"""
Point a client at it:
  {paint(f"export OPENAI_BASE_URL={app.url}/v1 OPENAI_API_KEY=any", Style.BOLD)}

Or ask by hand:
  {paint(curl(app.url), Style.BOLD)}

Status and metrics: {app.admin_url}/status {app.admin_url}/metrics
Ctrl-C stops it. Its log:""",
        flush=True,
    )


def curl(url: str) -> str:
    """Return a shell command that streams a chat completion from the gateway at `url`."""
    body = json.dumps(EXAMPLE)
    return f"curl -sN {url}/v1/chat/completions -H 'content-type: application/json' -d '{body}'"
