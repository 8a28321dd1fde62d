"""The registry of dialects: every packaged row finds its own."""

import subprocess
import sys

import pytest

from providers.dialects.registry import DIALECTS
from providers.profiles.load_profiles import load_profiles

pytestmark = pytest.mark.smoke


METHODS = ("capabilities", "encode", "decode", "stream", "classify")


def test_every_profile_speaks_a_dialect_that_exists() -> None:
    assert {profile.dialect for profile in load_profiles().values()} == set(DIALECTS)


def test_each_dialect_is_made_once_and_has_the_contract_s_methods() -> None:
    for name in DIALECTS:
        assert DIALECTS[name] is DIALECTS[name]
        assert all(callable(getattr(DIALECTS[name], method)) for method in METHODS)


def test_only_the_dialects_that_a_table_speaks_are_imported() -> None:
    script = (
        "import sys; from providers.dialects.registry import DIALECTS; DIALECTS['cohere'];"
        "print([name for name in ('bedrock', 'cohere', 'gemini') if f'providers.dialects.{name}.dialect' in sys.modules"
        " or f'providers.dialects.{name}.converse' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['cohere']\n"
