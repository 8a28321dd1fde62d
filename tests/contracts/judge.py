"""Judges bodies, answers and events line by line in the environment of the vendors' SDKs.

    PYTHONPATH=DIRECTORY python -S -m tests.contracts.judge

`judges.Judges` starts it and describes both lines. Never imported by a test.
"""

import base64
import json
import sys
import warnings
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from tests.contracts.generated import SDKS

MOST = 600
"""Characters of a fault; unions of types tell pages."""


class Judge(Protocol):
    """What each module of this folder that is named after a wire has; all of it raises for what is wrong."""

    def check_body(self, operation: str, body: bytes) -> None:
        """A request."""

    def check_answer(self, body: bytes) -> None:
        """A whole answer."""

    def check_events(self, payloads: list[bytes]) -> None:
        """The payloads of a stream's events, or the bytes of one whose frames are not text."""


@cache
def judge(name: str) -> Judge:
    """A generated SDK's, or that of a module of this folder."""
    if name in SDKS:
        return SDKS[name]
    return cast(Judge, import_module(f"tests.contracts.{name}"))


def fault(order: dict[str, Any]) -> str | None:
    """What is wrong, None when nothing is."""
    payloads = [base64.b64decode(each) for each in order["payloads"]]
    own = judge(order["judge"])
    try:
        if order["check"] == "body":
            own.check_body(order["operation"], payloads[0])
        elif order["check"] == "answer":
            own.check_answer(payloads[0])
        else:
            own.check_events(payloads)
    except Exception as wrong:
        return f"{type(wrong).__name__}: {' '.join(str(wrong).split())}"[:MOST]
    return None


def main() -> None:
    """Answer until the orders end."""
    # Some types only warn about words that they do not list, and say so by themselves; the rest is the SDKs' own.
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(fault(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
