"""Running the examples of a page: shell lines against a running demo, and Python against it with a vendor's SDK."""

import asyncio
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

from tests.docs.marked_pages import ROOT
from tests.support.clients import install
from tests.support.gateway import running_gateway
from tests.support.shell import run_shell

DEMO: Final = (ROOT / "config" / "demo_table.yaml").read_text(encoding="utf-8")
KEYS: Final = {"OPENAI_API_KEY": "sk-a", "ANTHROPIC_API_KEY": "sk-b"}
SDKS: Final = {"openai": "openai3", "scale_gp": "scale_gp"}
"""The SDK that each Python example imports, by the name its environment has in the tests."""


async def printed_by(script: str, folder: Path) -> str:
    """Run the lines while a demo runs, and return their output. A command that would serve only checks."""
    ending = re.sub(r"^dragoman serve", "dragoman check", script, flags=re.MULTILINE)
    async with running_gateway(DEMO, folder) as gateway:
        here = ending.replace("http://127.0.0.1:8080", gateway.url).replace("http://127.0.0.1:9091", gateway.admin_url)
        return run_shell(here, folder, KEYS)


async def python_output(code: str, folder: Path) -> list[str]:
    """Run Python while a demo runs, and return the lines that it prints. Raises AssertionError if it writes errors."""
    environment = {"PYTHONPATH": str(install(SDKS[code.split()[1]]))}
    async with running_gateway(DEMO, folder) as gateway:
        command = [sys.executable, "-S", "-c", code.replace("http://127.0.0.1:8080", gateway.url)]
        run = partial(subprocess.run, command, env=environment, capture_output=True, text=True, check=False)
        done = await asyncio.to_thread(run)
    assert done.stderr == ""
    return done.stdout.splitlines()
