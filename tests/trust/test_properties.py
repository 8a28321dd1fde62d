"""The check that a property tried all its examples uses the count of hypothesis."""

from pathlib import Path

import pytest

from tests.trust import properties
from tests.trust.many_examples import EXAMPLES
from tests.trust.test_figures import there

STATISTICS = """\
tests/a.py::test_b:

  - during reuse phase (0.01 seconds):
    - 1 passing, 0 failing, and 0 invalid test cases
  - during generate phase (3.38 seconds):
    - Typical runtimes: < 1ms, of which < 1ms in data generation
    - 5000 passing, 0 failing, and 2 invalid test cases

tests/a.py::test_c:

  - during generate phase (0.10 seconds):
    - 12 passing, 1 failing, and 0 invalid test cases
"""


def test_examples_that_passed_are_counted() -> None:
    assert properties.passing(STATISTICS) == [5000, 12]


def test_there_are_twenty_properties_and_all_of_them_are_there() -> None:
    assert len(set(properties.PROPERTIES)) == 20
    assert [node for node in properties.PROPERTIES if not there(node)] == []


def test_a_property_of_few_examples_is_not_held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    test = "test_nothing_that_a_client_may_hand_on_changes_host_credentials_or_framing"
    few = f"tests/proxy/upstream/test_request_headers.py::{test}"
    monkeypatch.setattr(properties, "PROPERTIES", (few,))
    result = properties.properties(tmp_path)
    assert (result.value, result.good) == (f"1 of 1 passed, 0 of them with {EXAMPLES} examples; 75 in all", False)
