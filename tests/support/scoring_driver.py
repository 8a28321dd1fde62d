"""The process in which lm-evaluation-harness scores texts: it reads JSON orders and writes scores.

    PYTHONPATH=DIRECTORY python -S -m tests.support.scoring_driver < ORDERS

Imports nothing but the standard library and the harness. `scoring_client.py` starts it and describes its input and
output.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from lm_eval.api.instance import Instance  # type: ignore[import-not-found]
from lm_eval.api.registry import get_model  # type: ignore[import-not-found]

Wire: TypeAlias = Any  # JSON of any shape


def scored(order: Mapping[str, Wire]) -> dict[str, Wire]:
    """Carry out one order. An exception of the harness ends the process."""
    client = get_model("local-completions")(**order["settings"])
    pairs = [Instance("loglikelihood", {}, tuple(pair), at) for at, pair in enumerate(order["pairs"])]
    texts = [Instance("loglikelihood_rolling", {}, (text,), at) for at, text in enumerate(order["texts"])]
    return {
        "pairs": client.loglikelihood(pairs) if pairs else [],
        "texts": client.loglikelihood_rolling(texts) if texts else [],
    }


def main() -> None:
    """Read one list of orders from standard input and write one list of scores to standard output."""
    print(json.dumps([scored(order) for order in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
