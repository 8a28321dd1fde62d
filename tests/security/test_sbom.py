"""The list of shipped components is complete and contains nothing else, with the hashes of the lock."""

import json
import re
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.security.floor import LOCKS, ROOT
from tests.security.sbom import LOCK, bill, entries
from tests.support.looped import looped

TEXT = (ROOT / LOCK).read_text("utf-8")

Bill = dict[str, Any]  # Any: JSON as a reader finds it


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(*roots: str) -> dict[str, str]:
    """Return the installed versions of these distributions and their dependencies, by name."""
    found: dict[str, str] = {}
    wanted = [Requirement(root) for root in roots]
    while wanted:
        requirement = wanted.pop()
        name = normal(requirement.name)
        if name in found:
            continue
        distribution = metadata.distribution(name)
        found[name] = distribution.version
        for line in distribution.requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)
            ):
                wanted.append(needed)
    return found


def differences(made: Bill, scope: str, held: dict[str, str]) -> list[str]:
    """Return the differences between the components of a scope and the contents of an installation."""
    listed = {each["name"]: each["version"] for each in made["components"] if each["scope"] == scope}
    return sorted(
        [f"{name} {version} is not listed" for name, version in held.items() - listed.items()]
        + [f"{name} {version} is not installed" for name, version in listed.items() - held.items()]
    )


def runtime() -> dict[str, str]:
    """Return the contents of a runtime installation besides the program."""
    held = installed("dragoman")
    del held["dragoman"]
    return held


def listed(lock: str = TEXT) -> Bill:
    """Return the printed list of a lock."""
    made: Bill = json.loads(json.dumps(bill(lock)))
    return made


def without(name: str) -> str:
    return re.sub(rf"^{name}==.*\n(?:    .*\n)+", "", TEXT, flags=re.MULTILINE)


def test_what_runs_is_what_is_listed_as_required() -> None:
    held = runtime()
    assert len(held) > 10
    assert differences(listed(), "required", held) == []


def test_what_only_builds_it_is_listed_apart() -> None:
    assert {each["scope"] for each in listed()["components"]} == {"required"}
    made = listed((ROOT / "requirements-build.lock").read_text("utf-8"))
    assert {each["scope"] for each in made["components"]} == {"excluded"}
    assert differences(made, "excluded", installed("hatchling")) == []


def test_a_package_that_was_slipped_in_shows() -> None:
    planted = "zz-planted==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n    # via aiohttp\n"
    assert differences(listed(TEXT + planted), "required", runtime()) == ["zz-planted 1.0 is not installed"]


def test_a_package_that_is_left_out_or_exchanged_shows() -> None:
    held = runtime()
    assert differences(listed(without("yarl")), "required", held) == [
        f"{name} {held[name]} is not listed" for name in ("idna", "yarl")
    ]
    other = listed(TEXT.replace("tenacity==", "tenacity==0.0"))
    assert len(differences(other, "required", held)) == 2


@looped("lock", LOCKS)
def test_the_list_has_every_distribution_of_the_lock_with_all_its_hashes_and_no_other(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    pins = re.findall(r"^([a-z0-9._-]+)==([^ ;\\\n]+)", text, re.MULTILINE)
    components = listed(text)["components"]
    assert [(each["name"], each["version"]) for each in components] == pins
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    for component, block in zip(components, blocks, strict=True):
        (files,) = component["externalReferences"]
        hashes = [each["content"] for each in files["hashes"]]
        assert {each["alg"] for each in files["hashes"]} == {"SHA-256"}
        assert sorted(hashes) == sorted(re.findall(r"sha256:([0-9a-f]+)", block))
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"


@looped("lock", LOCKS)
def test_every_dependency_is_that_of_a_component(lock: str) -> None:
    made = listed((ROOT / lock).read_text("utf-8"))
    ours = made["metadata"]["component"]
    known = {ours["bom-ref"], *(each["bom-ref"] for each in made["components"])}
    assert len(known) == len(made["components"]) + 1
    assert {each["ref"] for each in made["dependencies"]} == known
    assert {name for each in made["dependencies"] for name in each["dependsOn"]} <= known


def test_our_own_part_says_its_version_and_its_licence() -> None:
    ours = listed()["metadata"]["component"]
    assert (ours["name"], ours["version"]) == ("dragoman", metadata.version("dragoman"))
    assert ours["licenses"] == [{"license": {"id": "Apache-2.0"}}]


def test_what_not_every_interpreter_needs_says_so() -> None:
    components = listed((ROOT / "requirements-clouds.lock").read_text("utf-8"))["components"]
    told = {each["name"]: each["properties"][0]["value"] for each in components if "properties" in each}
    assert told["cffi"] == "platform_python_implementation != 'PyPy'"


def test_equal_locks_are_equal_lists_and_others_have_another_number() -> None:
    command = [sys.executable, "-m", "tests.security.sbom"]
    printed = [subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout for _ in range(2)]
    assert printed[0] == printed[1]
    assert json.loads(printed[0]) == listed()
    assert listed()["serialNumber"] != listed(without("yarl"))["serialNumber"]


@looped("text", ["", "aiohttp==3.14.5\n    # via dragoman\n", "# nothing\n"])
def test_a_file_without_pins_or_hashes_is_no_lock(text: str) -> None:
    with pytest.raises(ValueError, match="no lock with hashes"):
        entries(text)
