"""The histograms and counters that are sent by OTLP, under the names of OpenTelemetry's conventions for generative AI,
by the setting `server.tracing.metric_names`.

Sources: for `operation`, semantic-conventions 1.41, the last version with these metrics, whose names and buckets
dashboards know. For `inference`, semantic-conventions-genai (migration guide of November 2026, unreleased): there the
durations of inference have their own names, and tokens are counters and histograms without a type label.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

Labels = tuple[tuple[str, str], ...]


class Quantity(Enum):
    """The measured quantities of a request. INFERENCE is the duration of text generation, OTHER the duration of any
    other request."""

    INFERENCE = "inference"
    OTHER = "other"
    FIRST_CHUNK = "first_chunk"
    CHUNK = "chunk"
    FIRST_TOKEN = "first_token"  # noqa: S105 - no password
    INPUT = "input"
    OUTPUT = "output"
    CACHE_READ = "cache_read"
    CACHE_WRITE = "cache_write"
    REASONING = "reasoning"


class MetricSeries(NamedTuple):
    """A metric that a quantity adds to, with the labels that it adds."""

    name: str
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class MetricShape:
    """A metric: its unit, its meaning, and the bounds of its buckets; a counter has no bounds."""

    unit: str
    text: str
    bounds: tuple[float, ...] = ()


TOKENS: Final = "gen_ai.client.token.usage"
DURATION: Final = "gen_ai.client.operation.duration"
FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
CHUNK: Final = "gen_ai.client.operation.time_per_output_chunk"
FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"  # noqa: S105 - a metric's name
_INFERENCE: Final = "gen_ai.client.inference"

_SECONDS: Final = tuple(0.01 * 2**power for power in range(14))
_COUNTS: Final = tuple(float(4**power) for power in range(14))
_FIRST: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)

_TO_FIRST: Final = MetricShape("s", "Time to the first content of a stream.", _SECONDS)
_PER_CHUNK: Final = MetricShape("s", "Time between two chunks of a stream, as the mean of the stream.", _SECONDS)

SHAPES: Final[Mapping[str, MetricShape]] = {
    TOKENS: MetricShape("{token}", "Tokens of a request.", _COUNTS),
    DURATION: MetricShape("s", "Duration of a request.", _SECONDS),
    FIRST_CHUNK: _TO_FIRST,
    CHUNK: _PER_CHUNK,
    FIRST_TOKEN: MetricShape("s", "Time to the first content of a stream.", _FIRST),
    f"{_INFERENCE}.duration": MetricShape("s", "Duration of a request that generates.", _SECONDS),
    f"{_INFERENCE}.time_to_first_chunk": _TO_FIRST,
    f"{_INFERENCE}.time_per_output_chunk": _PER_CHUNK,
    f"{_INFERENCE}.usage.input_tokens": MetricShape("{token}", "Tokens of prompts."),
    f"{_INFERENCE}.usage.output_tokens": MetricShape("{token}", "Tokens of responses."),
    f"{_INFERENCE}.usage.cache_read.input_tokens": MetricShape("{token}", "Tokens of prompts from vendors' caches."),
    f"{_INFERENCE}.usage.cache_write.input_tokens": MetricShape("{token}", "Tokens of prompts written to caches."),
    f"{_INFERENCE}.usage.reasoning.output_tokens": MetricShape("{token}", "Tokens of reasoning."),
    f"{_INFERENCE}.operation.input_tokens": MetricShape("{token}", "Tokens of a prompt.", _COUNTS),
    f"{_INFERENCE}.operation.output_tokens": MetricShape("{token}", "Tokens of a response.", _COUNTS),
}

Names = Mapping[Quantity, tuple[MetricSeries, ...]]

OPERATION: Final[Names] = {
    Quantity.INFERENCE: (MetricSeries(DURATION),),
    Quantity.OTHER: (MetricSeries(DURATION),),
    Quantity.FIRST_CHUNK: (MetricSeries(FIRST_CHUNK),),
    Quantity.CHUNK: (MetricSeries(CHUNK),),
    Quantity.FIRST_TOKEN: (MetricSeries(FIRST_TOKEN),),
    Quantity.INPUT: (MetricSeries(TOKENS, (("gen_ai.token.type", "input"),)),),
    Quantity.OUTPUT: (MetricSeries(TOKENS, (("gen_ai.token.type", "output"),)),),
}

INFERENCE: Final[Names] = {
    Quantity.INFERENCE: (MetricSeries(f"{_INFERENCE}.duration"),),
    Quantity.OTHER: (MetricSeries(DURATION),),
    Quantity.FIRST_CHUNK: (MetricSeries(f"{_INFERENCE}.time_to_first_chunk"),),
    Quantity.CHUNK: (MetricSeries(f"{_INFERENCE}.time_per_output_chunk"),),
    Quantity.FIRST_TOKEN: (MetricSeries(FIRST_TOKEN),),
    Quantity.INPUT: (
        MetricSeries(f"{_INFERENCE}.usage.input_tokens"),
        MetricSeries(f"{_INFERENCE}.operation.input_tokens"),
    ),
    Quantity.OUTPUT: (
        MetricSeries(f"{_INFERENCE}.usage.output_tokens"),
        MetricSeries(f"{_INFERENCE}.operation.output_tokens"),
    ),
    Quantity.CACHE_READ: (MetricSeries(f"{_INFERENCE}.usage.cache_read.input_tokens"),),
    Quantity.CACHE_WRITE: (MetricSeries(f"{_INFERENCE}.usage.cache_write.input_tokens"),),
    Quantity.REASONING: (MetricSeries(f"{_INFERENCE}.usage.reasoning.output_tokens"),),
}

BY_SETTING: Final[Mapping[str, Names]] = {
    "operation": OPERATION,
    "inference": INFERENCE,
    "both": {each: tuple(dict.fromkeys((*OPERATION.get(each, ()), *INFERENCE.get(each, ())))) for each in Quantity},
}
"""The names for each value of the setting; `both` is for the release in which dashboards change."""
