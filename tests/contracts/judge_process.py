"""The process that judges bodies, responses and events, one order per line, in the environment of the vendors' SDKs.

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
"""The greatest length of a fault, in characters; errors of union types fill pages."""


class Judge(Protocol):
    def check_body(self, operation: str, body: bytes) -> None:
        """Raise if a request's body is wrong."""

    def check_answer(self, body: bytes) -> None:
        """Raise if a non-streaming response is wrong."""

    def check_events(self, payloads: list[bytes]) -> None:
        """Raise if the payloads of a stream's events are wrong, or the bytes of a stream whose frames are not text."""


@cache
def load_judge(name: str) -> Judge:
    """Return the judge of a generated SDK, or a module below `tests.providers.dialects`."""
    if name in SDKS:
        return SDKS[name]
    return cast(Judge, import_module(f"tests.providers.dialects.{name}"))


def find_fault(order: dict[str, Any]) -> str | None:
    """Return the fault in the payloads of an order, or `None`."""
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
    """Process orders until standard input ends."""
    # A judge whose types only warn about unlisted words turns these warnings into errors itself. Other warnings are
    # internal to the SDKs.
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(find_fault(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
