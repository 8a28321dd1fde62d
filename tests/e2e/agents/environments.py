"""The agent frameworks, each from its hashed lock in a directory of its own, and the processes that run them.

python -m tests.e2e.agents.environments        install all of them
python -m tests.e2e.agents.environments lock   choose their dependencies anew (needs uv and npm)
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.environments import CACHE, Environment, LineProcess

HERE = Path(__file__).resolve().parent
NODE = HERE / "node"
CLI = HERE / "cli"
BUSBOY = HERE.parents[1] / "security" / "busboy"
LOCKED_BY = "python -m tests.e2e.agents.environments lock"

REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "agents": (
        "pydantic-ai-slim[anthropic,openai]==2.68.0",
        "langgraph==1.2.22",
        "langchain==1.4.7",
        "langchain-openai==1.7.3",
        "langchain-anthropic==1.7.7",
        "openai-agents==0.24.0",
        "openai==3.54.0",
        "anthropic==2.12.0",
    ),
    "rag": (
        "llama-index-core==0.14.25",
        "llama-index-embeddings-openai==0.7.0",
        "llama-index-llms-openai==0.8.3",
        "haystack-ai==3.4.0",
    ),
    "instructor": ("instructor==1.17.0", "anthropic==2.12.0"),
    "smolagents": ("smolagents==1.26.0", "openai==3.54.0"),
}
"""Distributions that are installed together. instructor needs another jiter than the openai of the others, llama-index
an older openai, and smolagents no framework of the others."""

FRAMEWORKS: Mapping[str, str] = {
    "pydantic_ai": "agents",
    "langgraph": "agents",
    "openai_agents": "agents",
    "instructor": "instructor",
    "pydantic_ai_responses": "agents",
    "langgraph_responses": "agents",
    "openai_agents_default": "agents",
    "pydantic_ai_anthropic": "agents",
    "langgraph_anthropic": "agents",
    "instructor_forced": "instructor",
    "smolagents": "smolagents",
}
"""The environment of each framework in Python."""


def environment(name: str) -> Environment:
    """Return the environment that frameworks are installed in."""
    return Environment(name, HERE / f"{name}.lock", REQUIREMENTS[name], LOCKED_BY)


def python_process(name: str) -> LineProcess:
    """Start the driver of the frameworks in an environment."""
    return LineProcess(environment(name), "tests.e2e.agents.driver")


def sdk_process(name: str) -> LineProcess:
    """Start the driver of the SDKs in an environment."""
    return LineProcess(environment(name), "tests.e2e.agents.sdk_driver")


class NodeProcess:
    """A driver in Node.js that returns one line for each line."""

    def __init__(self, driver: str, *arguments: str, folder: Path = NODE) -> None:
        self._process = subprocess.Popen(
            ["node", driver, *arguments],
            cwd=install_packages(folder),
            env={"PATH": os.environ.get("PATH", "")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def exchange(self, line: str) -> str:
        """Return the response to a line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def install_packages(folder: Path) -> Path:
    """Install the packages of a folder's lock file if they are absent. Return their directory, beside the folder's
    modules.

    Packages run no install scripts. Raise RuntimeError with npm's output if the installation fails.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".mjs"))
    digest = hashlib.sha256(b"".join([path.read_bytes() for path in files])).hexdigest()[:16]
    target = CACHE / f"{folder.name}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n", encoding="utf-8")
    with (CACHE / f"{folder.name}.flock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            unfinished = CACHE / f"{folder.name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            for path in files:
                shutil.copy(path, unfinished)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            done = subprocess.run(command, cwd=unfinished, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"could not install the packages of {folder}:\n{done.stderr.strip()[-2000:]}")
            unfinished.rename(target)
    return target


def main() -> None:
    if sys.argv[1:] == ["lock"]:
        for name in REQUIREMENTS:
            environment(name).write_lock()
        lock = ["npm", "install", "--package-lock-only", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"]
        for folder in (NODE, CLI, BUSBOY):
            subprocess.run(lock, cwd=folder, check=True)
        return
    for name in REQUIREMENTS:
        environment(name).install()
    for folder in (NODE, CLI, BUSBOY):
        install_packages(folder)


if __name__ == "__main__":
    main()
