"""OpenTelemetry's own Collector, if one is on PATH: it decodes the gateway's exports, and sends them on."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.gateway import free_ports

PROGRAMS = ("otelcol", "otelcol-contrib", "otelcorecol")

CONFIG = """\
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlp_http: {{endpoint: "{onward}", compression: none}}, debug: {{verbosity: detailed}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlp_http, debug]}}
    metrics: {{receivers: [otlp], exporters: [otlp_http, debug]}}
    logs: {{receivers: [otlp], exporters: [otlp_http, debug]}}
"""


@contextmanager
def real_collector(folder: Path, onward: str) -> Iterator[str]:
    """Run a Collector for the duration of the block that sends everything to `onward`; yield its own address. Its log
    is in the folder."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no OpenTelemetry Collector is installed")
    (port,) = free_ports(1)
    config, log = folder / "collector.yaml", folder / "collector.log"
    config.write_text(CONFIG.format(port=port, onward=onward), encoding="utf-8")
    with log.open("wb") as told, subprocess.Popen([program, "--config", config], stdout=told, stderr=told) as process:
        try:
            while process.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=30).close()
                except ConnectionRefusedError:
                    time.sleep(0.02)
                else:
                    break
            assert process.poll() is None, log.read_text(encoding="utf-8")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
