"""HAProxy as a plain forwarder: one thread, no log, with connections to the vendor that are reused and shared."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.programs.program import Forwarder, Program, Target, running_process, said
from tests.bench.upstream import RunningUpstream
from tests.support.gateway import free_ports

CONFIG = """\
global
  nbthread 1
  maxconn 4096
  ssl-server-verify required
defaults
  mode http
  no log
  option http-no-delay
  http-reuse always
  timeout connect 5s
  timeout client 600s
  timeout server 600s
frontend plain
  bind 127.0.0.1:{port}
  default_backend plain
frontend secure
  bind 127.0.0.1:{tls_port}
  default_backend secure
backend plain
  server fake 127.0.0.1:{upstream}
backend secure
  server fake 127.0.0.1:{secure} ssl ca-file {authority} sni str(localhost) verifyhost localhost
"""


def config(ports: tuple[int, int], upstream: RunningUpstream) -> str:
    """Return the configuration."""
    return CONFIG.format(
        port=ports[0],
        tls_port=ports[1],
        upstream=upstream.port,
        secure=upstream.tls_port,
        authority=upstream.authority,
    )


def haproxy() -> Program | None:
    """Return HAProxy, if it is installed (on Debian: apt-get install haproxy)."""
    path = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if path is None:
        return None

    @contextmanager
    def start(folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        port, tls_port = free_ports(2)
        written = folder / "haproxy.cfg"
        written.write_text(config((port, tls_port), upstream), encoding="utf-8")
        with running_process([path, "-db", "-f", str(written)], folder, port) as pid:
            yield Forwarder("HAProxy", port, pid, tls_port)

    version = re.search(r"version (\d[\d.]*)", said([path, "-v"]))
    return Program("HAProxy", version[1] if version else "", start)
