"""The judges of every profile's bodies, as the folders of the dialects declare them."""

from collections.abc import Mapping
from typing import Final

from providers.profiles.load_profiles import load_profiles
from tests.contracts.judged_by import JudgedBy
from tests.support.dialects import declared

JUDGES: Final[Mapping[str, tuple[JudgedBy, ...]]] = declared("suite_data.py", "JUDGES")
"""The judges by profile. A body must pass all judges of its profile."""

UNJUDGED: Final = frozenset({"mock"})
"""The vendor inside the gateway, which accepts any client body."""

_OPENAI: Final = (JudgedBy("openai:chat", "openai:completions"),)


def judged_by(profile: str) -> tuple[JudgedBy, ...]:
    """Return the judges of a profile. An OpenAI-dialect profile without an entry has OpenAI's types.

    Raises KeyError for a profile of another dialect without an entry.
    """
    dialect = load_profiles()[profile].dialect
    return JUDGES.get(profile, _OPENAI) if dialect == "openai" else JUDGES[profile]
