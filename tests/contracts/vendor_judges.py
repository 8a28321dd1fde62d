"""The judges of every profile's bodies, as the folders of the dialects declare them."""

from collections.abc import Mapping
from typing import Final

from providers.profiles.load_profiles import load_profiles
from tests.contracts.judged_by import JudgedBy
from tests.support.dialects import declared

JUDGES: Final[Mapping[str, tuple[JudgedBy, ...]]] = declared("suite_data.py", "JUDGES")
"""By profile. A body must pass all of a profile's judges."""

UNJUDGED: Final = frozenset({"mock"})
"""The vendor inside the gateway, which takes what a client may send."""

_OPENAI: Final = (JudgedBy("openai:chat", "openai:completions"),)


def judged_by(profile: str) -> tuple[JudgedBy, ...]:
    """Return the judges of a profile: OpenAI's types for one of the OpenAI dialect without an entry.

    Raises KeyError for one of another dialect without an entry.
    """
    dialect = load_profiles()[profile].dialect
    return JUDGES.get(profile, _OPENAI) if dialect == "openai" else JUDGES[profile]
