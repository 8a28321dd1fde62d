"""The harness is locked with hashes, and its failures are reported with its own output."""

import re

import pytest

from tests.support.scoring_client import LEFT_OUT, LOCK, REQUIREMENTS, SCENARIOS, Endpoint, order, score


def test_the_lock_pins_the_harness_with_hashes_leaves_out_its_tasks_and_names_no_host() -> None:
    text = LOCK.read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9._-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*", text, re.MULTILINE)
    names = {pin.partition("==")[0] for pin in pins}
    assert [pin.splitlines()[0] for pin in pins if "--hash=" not in pin] == []
    assert REQUIREMENTS[0].replace("_", "-") in {pin.split()[0] for pin in pins}
    assert names.isdisjoint(LEFT_OUT)
    assert re.findall(r"://|^\s*-(?!-hash)|@ ", text, re.MULTILINE) == []


@pytest.mark.clients
@pytest.mark.timeout(300)
async def test_its_failure_is_told_in_its_own_words() -> None:
    broken = order(SCENARIOS["single"], Endpoint("http://127.0.0.1:9/v1/completions", "m"))
    broken["settings"] = {"tokenizer": 1}
    with pytest.raises(RuntimeError, match=r"lm-evaluation-harness failed:\n(.*\n)*.*Error"):
        await score([broken])
