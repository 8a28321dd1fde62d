"""HAProxy and nginx in front of two gateways, as docs/deploy.md configures them, with shorter times."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gateway import ROOT, free_ports
from tests.support.waiting import until

PAGE = ROOT / "docs" / "deploy.md"
SBIN = ":/usr/sbin:/usr/local/sbin"

HAPROXY_BEFORE = """\
global
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
"""
"""The part of an operator's configuration that precedes the lines of the page."""

NGINX_AROUND = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
{lines}
}}
"""


@dataclass(frozen=True, slots=True)
class ProxyProgram:
    """A proxy: its Debian package, the fence of its lines in the page, its complete configuration, and its command."""

    name: str
    fence: str
    before: Callable[[Path, str], str]
    command: tuple[str, ...]


def _in_nginx(folder: Path, lines: str) -> str:
    return NGINX_AROUND.format(folder=folder, lines=lines)


HAPROXY = ProxyProgram("haproxy", "```haproxy", lambda _, lines: HAPROXY_BEFORE + lines, ("-db", "-f"))
NGINX = ProxyProgram("nginx", "```nginx", _in_nginx, ("-c",))


def documented(fence: str) -> str:
    """Return the only block of the page in this language."""
    (found,) = re.findall(rf"^{fence}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)


def configured(program: ProxyProgram, folder: Path, port: int, gateways: tuple[int, int], inter: str) -> str:
    """Return a complete configuration: the lines of the page with these ports and this interval of checks."""
    lines = documented(program.fence)
    for name, value in (("*:8443", f"127.0.0.1:{port}"), ("inter 1s", f"inter {inter}")):
        assert name in lines or program is NGINX, name
        lines = lines.replace(name, value)
    for name, gateway in zip(("10.0.0.1:8080", "10.0.0.2:8080"), gateways, strict=True):
        assert name in lines, name
        lines = lines.replace(name, f"127.0.0.1:{gateway}")
    return program.before(folder, lines)


@asynccontextmanager
async def proxying(program: ProxyProgram, folder: Path, gateways: tuple[int, int], inter: str) -> AsyncIterator[int]:
    """Yield the port of a proxy in front of two gateways. Skip the test if the proxy is not installed."""
    async with started(program, folder, lambda port: configured(program, folder, port, gateways, inter)) as port:
        yield port


@asynccontextmanager
async def started(program: ProxyProgram, folder: Path, configure: Callable[[int], str]) -> AsyncIterator[int]:
    """Yield the port of a proxy with the given configuration. Skip the test if the proxy is not installed."""
    path = shutil.which(program.name, path=os.environ.get("PATH", "") + SBIN)
    if path is None:
        pytest.skip(f"{program.name} is not installed")
    (port,) = free_ports(1)
    process = _started([path, *program.command], folder, configure(port))
    try:
        await until(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, (folder / "said.log").read_text(encoding="utf-8")
        yield port
    finally:
        process.terminate()
        process.wait()


def _started(command: list[str], folder: Path, configuration: str) -> "subprocess.Popen[bytes]":
    folder.mkdir()
    written = folder / "proxy.cfg"
    written.write_text(configuration, encoding="utf-8")
    with (folder / "said.log").open("wb") as said:
        return subprocess.Popen([*command, str(written)], stdout=said, stderr=said)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except ConnectionRefusedError:
        return False
    return True
