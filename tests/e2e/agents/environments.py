"""The agent frameworks, each from its hashed lock in a directory of its own, and the processes that run them.

python -m tests.e2e.agents.environments        install all of them
python -m tests.e2e.agents.environments lock   choose their dependencies anew (needs uv and npm)
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.environments import CACHE, Environment, LineProcess

HERE = Path(__file__).resolve().parent
NODE = HERE / "node"
LOCKED_BY = "python -m tests.e2e.agents.environments lock"

REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "agents": (
        "pydantic-ai-slim[openai]==2.68.0",
        "langgraph==1.2.22",
        "langchain==1.4.7",
        "langchain-openai==1.7.3",
        "openai-agents==0.24.0",
    ),
    "instructor": ("instructor==1.17.0",),
}
"""What is installed together: instructor wants another jiter than the openai of the others."""

FRAMEWORKS: Mapping[str, str] = {
    "pydantic_ai": "agents",
    "langgraph": "agents",
    "openai_agents": "agents",
    "instructor": "instructor",
}
"""The environment of each framework in Python."""


def environment(name: str) -> Environment:
    """Return the environment that frameworks are installed in."""
    return Environment(name, HERE / f"{name}.lock", REQUIREMENTS[name], LOCKED_BY)


def python_process(framework: str) -> LineProcess:
    """Start the driver of a framework in Python."""
    return LineProcess(environment(FRAMEWORKS[framework]), "tests.e2e.agents.driver", framework)


def install_node() -> Path:
    """Install the packages of the lock file if they are absent, and return the driver's path beside them.

    Raises RuntimeError with npm's output when that fails.
    """
    files = [NODE / name for name in ("package.json", "package-lock.json", "driver.mjs")]
    digest = hashlib.sha256(b"".join([path.read_bytes() for path in files])).hexdigest()[:16]
    target = CACHE / f"node-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "node.flock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            unfinished = CACHE / "node.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            for path in files:
                shutil.copy(path, unfinished)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            done = subprocess.run(command, cwd=unfinished, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"could not install the packages of {NODE}:\n{done.stderr.strip()[-2000:]}")
            unfinished.rename(target)
    return target / "driver.mjs"


def main() -> None:
    if sys.argv[1:] == ["lock"]:
        for name in REQUIREMENTS:
            environment(name).write_lock()
        lock = ["npm", "install", "--package-lock-only", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"]
        subprocess.run(lock, cwd=NODE, check=True)
        return
    for name in REQUIREMENTS:
        environment(name).install()
    install_node()


if __name__ == "__main__":
    main()
