"""The offline gate for known vulnerabilities: locks checked against `deploy/floors.yaml`, without a network.

Usage: python -m tests.security.floor [LOCK]... (exit status 0 sound, 1 not)
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ROOT / "deploy" / "floors.yaml"
LOCKS = (
    *("requirements.lock", "requirements-clouds.lock", "requirements-build.lock", "requirements-dev.lock"),
    *("requirements-pip.lock", "requirements-docs.lock"),
)

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\\n]+)", re.MULTILINE)


class Floor(BaseModel):
    """The minimum version of a package, and the advisories that each version closed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    least: str
    because: Mapping[str, tuple[str, ...]]


def load() -> Mapping[str, Floor]:
    """Return the minimum of each package."""
    return TypeAdapter(dict[str, Floor]).validate_python(yaml.safe_load(FLOORS.read_text("utf-8")))


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison. A pre-release counts as less than its release."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    if found is None:
        raise ValueError(f"no version: {version}")
    numbers = tuple(map(int, found[0].split(".")))
    final = 0 if re.match(r"[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview|dev)", version[found.end() :]) else 1
    return (*numbers, *[0] * (6 - len(numbers)), final)


def below(lock: str, floors: Mapping[str, Floor]) -> list[str]:
    """Return every pin of a lock that is below its minimum, with its open advisories. Raise ValueError if the text is
    not a lock."""
    pins = _PIN.findall(lock)
    if not pins:
        raise ValueError("there is no pinned package in it")
    found = []
    for name, version in pins:
        floor = floors.get(re.sub(r"[-_.]+", "-", name).lower())
        if floor is not None and release(version) < release(floor.least):
            closed = [(at, known) for at, known in floor.because.items() if release(version) < release(at)]
            holes = ", ".join(each for _, known in closed for each in known)
            found.append(f"{name} {version} is below {floor.least}: {holes}")
    return found


def main(arguments: Sequence[str]) -> int:
    floors = load()
    paths = [Path(argument) for argument in arguments] or [ROOT / name for name in LOCKS]
    found = [f"{path.name}: {problem}" for path in paths for problem in below(path.read_text("utf-8"), floors)]
    print("\n".join(found) or f"{len(paths)} locks hold nothing below the {len(floors)} floors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
