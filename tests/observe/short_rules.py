"""The shipped rules with all their times divided, so that an alert that takes minutes fires in seconds.

The durations of each `for`, each range (`[5m]`) and each `offset` are divided. The expressions themselves are
unchanged, including their thresholds (also numbers of seconds) and the labels. So the rules that fire here are the
shipped ones.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

FACTOR: Final = 60
"""The divisor: an hour becomes a minute."""

_UNITS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(\d+)([smhd])")
_IN_EXPRESSION: Final = re.compile(r"(?<=\[)\d+[smhd](?=\])|(?<=offset )\d+[smhd]")


def shortened_duration(text: str) -> str:
    """Return a divided duration, at least one second."""
    found = _DURATION.fullmatch(text)
    assert found is not None, text
    return f"{max(1, int(found[1]) * _UNITS[found[2]] // FACTOR)}s"


def shortened(rules: str) -> str:
    """Return the rules with divided times, evaluated every second."""
    document: dict[str, Any] = yaml.safe_load(rules)
    for group in document["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            rule["expr"] = _IN_EXPRESSION.sub(lambda found: shortened_duration(found[0]), rule["expr"])
            if "for" in rule:
                rule["for"] = shortened_duration(rule["for"])
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
