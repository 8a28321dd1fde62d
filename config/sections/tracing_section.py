"""The `server.tracing` section: the collector that receives traces and metrics by OTLP, and their content."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from config.sections.limits_section import PERCENT, to_share
from config.sections.section import Section
from config.sections.value_types import (
    DURATION_PATTERN,
    BaseUrl,
    HeaderValue,
    Referable,
    Switch,
    Text,
    key_matching,
    refuse,
    to_seconds,
)

_EXPORTER_HEADERS: Final = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "expect", "host", "te", "transfer-encoding"}
)


def _off_as_word(value: object) -> object:
    """Convert false and true to `off` and `on`: YAML reads the unquoted words as booleans."""
    return {False: "off", True: "on"}[value] if isinstance(value, bool) else value


def _check_collector_header(name: str) -> str:
    if name.lower() in _EXPORTER_HEADERS:
        raise refuse("this header is set by the exporter")
    return name


CollectorHeader = Annotated[
    str,
    key_matching(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", "is not a header name"),
    AfterValidator(_check_collector_header),
]
TracedShare = Annotated[float, Field(ge=0, le=1), Referable(to_share, PERCENT, "share")]
ExportTimeout = Annotated[float, Field(ge=0.1, le=60), Referable(to_seconds, DURATION_PATTERN, "duration")]
ExportMetrics = Annotated[Literal["off", "on"], Referable(), BeforeValidator(_off_as_word)]
MetricNames = Annotated[Literal["operation", "inference", "both"], Referable()]
AttributeName = Annotated[
    str,
    key_matching(r"[A-Za-z][A-Za-z0-9._-]{0,127}", "must be the name of an attribute, such as deployment.environment"),
]


class TracingSection(Section):
    """Traces by OpenTelemetry: one span for each request and one for each attempt, by OTLP over HTTP. No request waits
    for it: spans that the collector does not accept in time are dropped and counted. Needs the extra `otel`."""

    endpoint: BaseUrl = Field(
        description="The collector, such as http://127.0.0.1:4318; /v1/traces and /v1/metrics are added to it."
    )
    headers: dict[CollectorHeader, HeaderValue] = Field(
        default={}, description='Headers that are sent to it, such as authorization: "Bearer ${OTLP_TOKEN}".'
    )
    sample: TracedShare = Field(
        default=1.0,
        description="The share of the requests that are traced, such as 10% or 0.1. A request with a `traceparent` is "
        "traced if its caller traces it, and only then.",
    )
    content: Switch = Field(
        default=False,
        description="Write the texts of prompts and responses, cut at 32,000 characters each, and the messages of "
        "vendors' errors into the spans. Everyone with access to the traces can read them then.",
    )
    metrics: ExportMetrics = Field(
        default="off",
        description="on: send tokens, durations, the time to the first token and chunk, and the time between chunks, "
        "also under OpenTelemetry's names for generative AI, every 30 s.",
    )
    metric_names: MetricNames = Field(
        default="operation",
        description="Which of these names: the names of semantic-conventions 1.41, which dashboards know "
        "(`gen_ai.client.operation.*`, `gen_ai.client.token.usage`), their successors "
        "(`gen_ai.client.inference.*`), or both while dashboards change.",
    )
    service_name: Text = Field(default="dragoman", description="The resource's service.name.")
    attributes: dict[AttributeName, Text] = Field(
        default={}, description="More attributes of the resource, such as deployment.environment.name: production."
    )
    timeout: ExportTimeout = Field(
        default=10.0, description="How long one export may take, including retries: 100ms to 60s."
    )
