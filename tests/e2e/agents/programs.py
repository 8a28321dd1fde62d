"""Claude Code and Codex CLI, unmodified, in one non-interactive session: a prompt changes the files of a folder.

Both get a home folder of their own, no variable of this process but PATH, and no address but the gateway's. The
variables and settings here turn off their other network traffic.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from providers.json_types import JsonObject
from tests.e2e.agents.environments import CLI, install_packages

_CLAUDE = "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs"
_CODEX = "node_modules/@openai/codex/bin/codex.js"

SETTINGS = """\
model = {model}
model_provider = "dragoman"
model_providers.dragoman = {name = "Dragoman", base_url = "{url}/v1", env_key = "DRAGOMAN_API_KEY"}
analytics.enabled = false
web_search = "disabled"
"""
"""`$CODEX_HOME/config.toml`."""

_PATIENCE = 90.0
"""Seconds that a session may take."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session that ended: its exit status, its lines of JSON, and its complete output."""

    status: int
    lines: Sequence[JsonObject]
    output: str


async def claude_code(
    gateway: str, model: str, prompt: str, folder: Path, variables: Mapping[str, str] | None = None
) -> Session:
    """Run Claude Code in `folder`. The session prints one line, its result."""
    home = folder.parent / f"{folder.name}-home"
    home.mkdir()
    chosen = variables or {"ANTHROPIC_AUTH_TOKEN": "sk-of-the-team", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    environment = {"HOME": str(home), "ANTHROPIC_BASE_URL": gateway, "ANTHROPIC_MODEL": model, **chosen}
    # As root it works without confirmation only in a sandbox.
    environment["IS_SANDBOX"] = "1"
    return await _run(
        [_CLAUDE, "-p", prompt, "--output-format", "json", "--dangerously-skip-permissions"], folder, environment
    )


async def codex(gateway: str, model: str, prompt: str, folder: Path, settings: str = "") -> Session:
    """Run Codex CLI in `folder`, with more lines of settings. The session's lines are its events."""
    home = folder.parent / f"{folder.name}-home"
    home.mkdir()
    chosen = SETTINGS.replace("{url}", gateway).replace("{model}", orjson.dumps(model).decode())
    (home / "config.toml").write_text(chosen + settings, encoding="utf-8")
    environment = {"HOME": str(home), "CODEX_HOME": str(home), "DRAGOMAN_API_KEY": "sk-of-the-team"}
    options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return await _run([_CODEX, "exec", *options, prompt], folder, environment)


async def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Session:
    program = await asyncio.to_thread(install_packages, CLI)
    process = await asyncio.create_subprocess_exec(
        *("node", str(program / command[0]), *command[1:]),
        cwd=folder,
        env={"PATH": os.environ.get("PATH", ""), **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), _PATIENCE)
    finally:
        if process.returncode is None:
            # The program itself is a child of the started process.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    output = (out + err).decode(errors="replace")
    lines = [orjson.loads(line) for line in out.splitlines() if line.startswith(b"{")]
    return Session(process.returncode or 0, lines, output)
