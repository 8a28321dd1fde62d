"""The real lm-evaluation-harness in an environment and a process of its own: the texts to score and the calls.

python -m tests.support.scoring_client install it python -m tests.support.scoring_client lock choose its dependencies
anew (needs uv)
"""

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypedDict

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.support.environments import LOCKS, ROOT, Environment

LOCK = LOCKS / "scoring" / "lm_eval.lock"
FIXTURES = ROOT / "tests" / "fixtures" / "lm_eval"
TOKENIZER = FIXTURES / "tokenizer"

REQUIREMENTS = (
    "lm_eval==0.4.13",
    "aiohttp",
    "jinja2",
    "numpy",
    "pyyaml",
    "requests",
    "tenacity",
    "tqdm",
    "transformers",
    "typing-extensions",
)
"""The harness, the imports of its `local-completions` model, and transformers for the tokenizer of a folder."""

LEFT_OUT = (
    "datasets",
    "dill",
    "evaluate",
    "more-itertools",
    "pytablewriter",
    "rouge-score",
    "sacrebleu",
    "scikit-learn",
    "sqlitedict",
    "word2number",
)
"""Dependencies that only the harness's tasks and metrics need, 400 MB. Its client of an HTTP API works without them."""

ENVIRONMENT = Environment("lm_eval", LOCK, REQUIREMENTS, "python -m tests.support.scoring_client lock", LEFT_OUT)

FOX, GATEWAY = "The quick brown fox", "A gateway routes"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Texts to score and the harness's settings for it.

    `pairs` are (context, continuation); `texts` are scored whole, in windows of the harness's `max_length`.
    """

    settings: Mapping[str, JsonValue]
    pairs: tuple[tuple[str, str], ...] = ()
    texts: tuple[str, ...] = ()


PAIRS = (
    (FOX, " jumps over the lazy dog."),
    ("O", " gat"),
    (FOX, " routes each request."),
    (GATEWAY, " each request to the right model."),
    ("", "A gateway"),
    ("Straße in 東京", " é 🙂."),
)
"""A pair that is greedy for both tiny models, one context twice, an empty context, which the harness replaces by the
end-of-text token, and a pair whose tokens are not UTF-8."""

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        "single": Scenario({}, PAIRS[:2]),
        "batches": Scenario({"batch_size": 3}, PAIRS),
        "concurrent": Scenario({"batch_size": 2, "num_concurrent": 2}, PAIRS),
        "rolling": Scenario({"batch_size": 2, "max_length": 20}, texts=("".join((*PAIRS[0], *PAIRS[2])),)),
        "strings": Scenario({"batch_size": 2, "tokenized_requests": False}, PAIRS[:2]),
    }
)
"""`single` and `batches` use requests, one request after the other; `concurrent` uses aiohttp."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The harness's scores: log-likelihood and greediness of each pair, log-likelihood of each text."""

    pairs: tuple[tuple[float, bool], ...]
    texts: tuple[float, ...]


class Line(TypedDict):
    """The driver's response to one order, with the same fields as `Scores`."""

    pairs: list[tuple[float, bool]]
    texts: list[float]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The destination of the harness's requests: a completions URL that ends in `/v1/completions`, and a model
    there."""

    url: str
    model: str


def order(scenario: Scenario, endpoint: Endpoint) -> JsonObject:
    """Return the driver's order for one scenario at one endpoint."""
    settings = {"model": endpoint.model, "base_url": endpoint.url, "tokenizer": str(TOKENIZER), **scenario.settings}
    return {"settings": settings, "pairs": [list(pair) for pair in scenario.pairs], "texts": list(scenario.texts)}


async def score(orders: Sequence[JsonObject], key: str | None = None) -> list[Scores]:
    """Carry out the orders with the harness in one process, one after the other.

    Without a key the harness sends `Authorization: Bearer ` and nothing behind it, as it does if OPENAI_API_KEY is
    unset. Raise `RuntimeError` with the harness's output if it failed.
    """
    answer = await asyncio.to_thread(_run, orjson.dumps(list(orders)), {} if key is None else {"OPENAI_API_KEY": key})
    return [
        Scores(tuple((number, greedy) for number, greedy in line["pairs"]), tuple(line["texts"])) for line in answer
    ]


def _run(orders: bytes, variables: Mapping[str, str]) -> list[Line]:
    environment = {**ENVIRONMENT.variables(), "HF_HUB_OFFLINE": "1", **variables}
    command = [sys.executable, "-S", "-m", "tests.support.scoring_driver"]
    done = subprocess.run(command, cwd=ROOT, env=environment, input=orders, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"lm-evaluation-harness failed:\n{done.stderr.decode()[-4000:]}")
    lines: list[Line] = orjson.loads(done.stdout)
    return lines


def main() -> None:
    if sys.argv[1:] == ["lock"]:
        ENVIRONMENT.write_lock()
    else:
        ENVIRONMENT.install()


if __name__ == "__main__":
    main()
