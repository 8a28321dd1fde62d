"""The SDKs' locks: each pins its recipe's requirement, with hashes."""

import re

from tests.support import clients
from tests.support.environments import LOCKS
from tests.support.looped import looped


@looped("name", clients.RECIPES)
def test_a_lock_pins_the_wanted_version_with_hashes_and_names_no_host(name: str) -> None:
    text = clients.environment(name).lock.read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9._-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*", text, re.MULTILINE)
    assert [pin.splitlines()[0] for pin in pins if "--hash=" not in pin] == []
    assert clients.RECIPES[name].requirement in {pin.split()[0] for pin in pins}
    assert re.findall(r"://|^\s*-(?!-hash)|@ ", text, re.MULTILINE) == []


def test_there_is_no_lock_without_a_recipe() -> None:
    assert {path.stem for path in LOCKS.glob("*.lock")} == set(clients.RECIPES)
