"""nginx as a plain forwarder to the fake upstream, the yardstick: no log, no stream buffered on disk."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000;
  upstream fake {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://fake;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


def config(folder: Path, port: int, upstream: int) -> str:
    """The configuration. As root nginx would give its worker to another user, who cannot enter the folder."""
    return TABLE.format(folder=folder, port=port, upstream=upstream, user="user root;" if os.getuid() == 0 else "")


def nginx_path() -> str | None:
    """Return nginx's path, None when it is not installed; Debian puts it outside of a user's PATH."""
    return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


@contextmanager
def running_nginx(program: str, folder: Path, upstream: int) -> Iterator[tuple[int, int]]:
    """nginx for as long as the block: its port, and the process id of its master."""
    (port,) = free_ports(1)
    path = folder / "nginx.conf"
    path.write_text(config(folder, port, upstream), encoding="utf-8")
    with subprocess.Popen([program, "-p", str(folder), "-e", "stderr", "-c", str(path)]) as process:
        try:
            wait_for_port(port, process)
            yield port, process.pid
        finally:
            process.terminate()


def wait_for_port(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a port accepts connections. Raises RuntimeError when the process ends instead."""
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            time.sleep(0.005)
        else:
            return
    raise RuntimeError(f"nginx ended with {process.returncode}")
