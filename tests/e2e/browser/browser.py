"""The system's Chromium, driven by playwright-core in a process of its own."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import orjson

from providers.json_types import JsonValue
from tests.e2e.agents.environments import install_packages

HERE = Path(__file__).resolve().parent
CHROMIUM = shutil.which("chromium")


class SystemBrowser:
    """One browser with one page at a time. `driver.mjs` defines the steps."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", "driver.mjs", str(CHROMIUM)],
            cwd=install_packages(HERE),
            env={"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    async def take(self, step: str, **values: object) -> JsonValue:
        """Take a step and return its result. Raise AssertionError with the browser's message if it failed."""
        answer = await asyncio.to_thread(self._exchange, orjson.dumps({"step": step, **values}))
        found = orjson.loads(answer)
        assert "error" not in found, found["error"]
        value: JsonValue = found.get("value")
        return value

    def _exchange(self, line: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the browser and its driver."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(20)
            finally:
                process.kill()
