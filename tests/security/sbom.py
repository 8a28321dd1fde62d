"""The parts of an installation as a CycloneDX 1.6 list, from a hashed lock alone: equal locks give equal bytes.

Usage: python -m tests.security.sbom [LOCK] (requirements.lock without one; the list goes to standard output)
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.security.floor import ROOT

LOCK = "requirements.lock"
OURS = "dragoman (pyproject.toml)"
"""The origin in a lock for the packages that we require ourselves. All of them are needed at run time."""

_ENTRY = re.compile(r"^(\S+)==([^ ;\\\n]+)(?: ; ([^\\\n]+?))? *\\?\n((?:    .*\n)+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"^    # +(?:via )?(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One distribution of a lock: the environment marker that requires it, its files' SHA-256, and the packages that
    require it."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Return the package URL, which identifies it in the list."""
        return f"pkg:pypi/{self.name}@{self.version}"


def entries(lock: str) -> tuple[Entry, ...]:
    """Return the distributions of a lock's text, in its order. Raise ValueError for a lock without pins, or with a pin
    without a hash."""
    found = tuple(
        Entry(name, version, marker, tuple(sorted(_HASH.findall(rest))), needed_by(rest))
        for name, version, marker, rest in _ENTRY.findall(lock)
    )
    if not found or not all(entry.hashes for entry in found):
        raise ValueError("this is no lock with hashes")
    return found


def needed_by(rest: str) -> tuple[str, ...]:
    """Return the names in an entry's comment."""
    return tuple(name for name in _VIA.findall(rest) if name != "via")


def at_run_time(found: Iterable[Entry]) -> frozenset[str]:
    """Return the names of the distributions that the program needs. The others are only for building it."""
    reached, grew = {OURS}, True
    while grew:
        more = {entry.name for entry in found if reached & {*entry.needed_by}}
        grew = not more <= reached
        reached |= more
    return frozenset(reached - {OURS})


def bill(lock: str) -> dict[str, object]:
    """Return the list of a lock's text. It has no time, and its serial number is derived from the content."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = entries(lock)
    needed = at_run_time(found)
    ours = f"pkg:pypi/{project['name']}@{project['version']}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{ours}\n{lock}").urn,
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": ours,
            },
        },
        "components": [_component(entry, "required" if entry.name in needed else "excluded") for entry in found],
        "dependencies": [
            {"ref": ours, "dependsOn": _needs(OURS, found)},
            *({"ref": entry.purl, "dependsOn": _needs(entry.name, found)} for entry in found),
        ],
    }


def _needs(name: str, found: Iterable[Entry]) -> list[str]:
    return [entry.purl for entry in found if name in entry.needed_by]


def _component(entry: Entry, scope: str) -> Mapping[str, object]:
    # A lock has a hash for each file of a release. An installation uses one of the files, so the hashes do not belong
    # to the component.
    files = {
        "type": "distribution",
        "url": f"https://pypi.org/project/{entry.name}/{entry.version}/",
        "hashes": [{"alg": "SHA-256", "content": content} for content in entry.hashes],
    }
    marker = [{"name": "dragoman:marker", "value": entry.marker}] if entry.marker else []
    return {
        "type": "library",
        "bom-ref": entry.purl,
        "name": entry.name,
        "version": entry.version,
        "scope": scope,
        "purl": entry.purl,
        "externalReferences": [files],
        **({"properties": marker} if marker else {}),
    }


def main(arguments: Sequence[str]) -> int:
    lock = Path(arguments[0]) if arguments else ROOT / LOCK
    print(json.dumps(bill(lock.read_text("utf-8")), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
