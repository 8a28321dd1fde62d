"""Any other gateway, started by a script that the user names: `--peer NAME=PATH`.

The script gets these environment variables: `UPSTREAM_PORT` (the fake vendor, OpenAI's chat completions under /v1),
`PORT` (where it has to listen on 127.0.0.1) and `FOLDER` (for its files). It prints a line `ready [MODEL [KEY]]` when
the gateway listens: the model that clients name and the key that they send. The script must run as long as the gateway
does. The best way is to replace itself by the gateway (`exec`) at the end. SIGTERM ends it with all of its children.
`README.md` beside this folder has examples.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.programs.program import Other, Program, Target
from tests.bench.traffic import KEY, MODEL
from tests.bench.upstream import RunningUpstream
from tests.support.gateway import free_ports

READY = "ready"


def read_ready(line: str) -> tuple[str, str]:
    """Return the model and the key of a script's line. Raise RuntimeError for another line, or if there is none."""
    word, *rest = line.split() or [""]
    if word != READY or len(rest) > 2:
        raise RuntimeError(f"the script said {line!r} instead of: {READY} [MODEL [KEY]]")
    model, key = [*rest, *(MODEL, KEY)[len(rest) :]]
    return model, key


def scripted(text: str) -> Program:
    """Return the program of a `--peer`. Raise ValueError if the text is not NAME=PATH of a file."""
    name, _, script = text.partition("=")
    if not name or not Path(script).is_file():
        raise ValueError(f"{text!r} is no NAME=PATH of a script")

    @contextmanager
    def start(folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        (port,) = free_ports(1)
        told = {"UPSTREAM_PORT": str(upstream.port), "PORT": str(port), "FOLDER": str(folder)}
        process = subprocess.Popen(
            [str(Path(script).resolve())],
            cwd=folder,
            env={**os.environ, **told},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            model, key = read_ready(process.stdout.readline())
            yield Other(name, port, process.pid, model, key)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)
            process.stdout.close()

    return Program(name, f"by {Path(script).name}", start)
