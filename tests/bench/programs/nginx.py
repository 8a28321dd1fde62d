"""nginx as a plain forwarder to the fake upstream. It is the reference: no log, no stream buffered on disk."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.programs.program import Forwarder, Program, Target, running_process, said
from tests.bench.upstream import RunningUpstream
from tests.support.gateway import free_ports

HINT = "nginx is not installed, so nothing is measured beside it (on Debian: apt-get install nginx-light)"

TABLE = """\
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log stderr error;
{user}
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_buffering off;
  upstream fake {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000; }}
  upstream secure {{ server 127.0.0.1:{secure}; keepalive 512; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{ proxy_pass http://fake; }}
  }}
  server {{
    listen 127.0.0.1:{tls_port} backlog=1024;
    location / {{
      proxy_pass https://secure;
      proxy_ssl_name localhost;
      proxy_ssl_server_name on;
      proxy_ssl_verify on;
      proxy_ssl_trusted_certificate {authority};
    }}
  }}
}}
"""


def config(folder: Path, ports: tuple[int, int], upstream: RunningUpstream) -> str:
    """Return the configuration. It sets the worker's user: as root, nginx would run its worker as another user, who
    cannot enter the folder."""
    return TABLE.format(
        folder=folder,
        port=ports[0],
        tls_port=ports[1],
        upstream=upstream.port,
        secure=upstream.tls_port,
        authority=upstream.authority,
        user="user root;" if os.getuid() == 0 else "",
    )


def nginx_path() -> str | None:
    """Return nginx's path. Return `None` if it is not installed. Debian installs it outside of a user's PATH."""
    return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def nginx() -> Program | None:
    """Return nginx, if it is installed."""
    path = nginx_path()
    if path is None:
        return None

    @contextmanager
    def start(folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        port, tls_port = free_ports(2)
        written = folder / "nginx.conf"
        written.write_text(config(folder, (port, tls_port), upstream), encoding="utf-8")
        command = [path, "-p", str(folder), "-e", "stderr", "-c", str(written)]
        with running_process(command, folder, port) as pid:
            yield Forwarder("nginx", port, pid, tls_port)

    version = re.search(r"nginx/(\S+)", said([path, "-v"]))
    return Program("nginx", version[1] if version else "", start)
