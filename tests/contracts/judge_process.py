"""The process that judges bodies, answers and events, one order a line, in the environment of the vendors' SDKs.

    PYTHONPATH=DIRECTORY python -S -m tests.contracts.judge_process

`sdk_judges.Judges` starts it and describes the lines.
"""

import base64
import json
import sys
import warnings
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from tests.contracts.generated_sdks import SDKS

MOST = 600
"""Characters of a fault; unions of types tell pages."""


class Judge(Protocol):
    def check_body(self, operation: str, body: bytes) -> None:
        """A request."""

    def check_answer(self, body: bytes) -> None:
        """A whole answer."""

    def check_events(self, payloads: list[bytes]) -> None:
        """The payloads of a stream's events, or the bytes of one whose frames are not text."""


@cache
def load_judge(name: str) -> Judge:
    """Return the judge of a generated SDK, or a module below `tests.providers.dialects`."""
    if name in SDKS:
        return SDKS[name]
    return cast(Judge, import_module(f"tests.providers.dialects.{name}"))


def find_fault(order: dict[str, Any]) -> str | None:
    """Return what is wrong with the payloads of an order; None when nothing is."""
    payloads = [base64.b64decode(each) for each in order["payloads"]]
    own = load_judge(order["judge"])
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
    """Answer orders until standard input ends."""
    # Some types only warn about words that they do not list, and say so by themselves; the rest is the SDKs' own.
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(find_fault(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
