"""The routing table as frozen pydantic models, one for each section.

Only keys that the gateway acts on are accepted. Docstrings and descriptions of the models are the operator's reference:
editors and the README show them.
"""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from config import defaults
from config.defaults import duration
from config.sections.affinity_section import AffinitySection
from config.sections.cache_section import CacheSection
from config.sections.credentials_section import CredentialsSection
from config.sections.failover_section import CircuitBreakerSection, HedgeSection, RetriesSection
from config.sections.limits_section import Budgets, Concurrent, EachUserSection, LimitsSection, TargetBudgets
from config.sections.media_section import MediaSection
from config.sections.plugins_section import PluginName, PluginSection
from config.sections.price_section import PriceSetting
from config.sections.route_section import LISTED, POLICIES, WEIGHT, RouteSection
from config.sections.section import MaybeEmptySection, Section
from config.sections.server_section import ServerSection
from config.sections.team_section import TeamSection
from config.sections.value_types import (
    DURATION_PATTERN,
    AllowedField,
    AllowedHeader,
    BaseUrl,
    ContextBehavior,
    Credential,
    DeploymentName,
    HeaderName,
    HeaderValue,
    ModelKey,
    OnUnsupported,
    OptionalSwitch,
    OptionalText,
    Policy,
    ProfileName,
    Referable,
    RouteName,
    StreamUpstream,
    Switch,
    TeamName,
    Text,
    Timeout,
    Tokens,
    UrlParam,
    UrlParamName,
    VendorName,
    Weight,
    off_as_word,
    refuse,
    to_seconds,
)

LONGEST_SILENCE: Final = 86400.0
"""Seconds between two keep-alives at most, as of any deadline."""


def _off_or_seconds(value: object) -> object:
    """Convert as `to_seconds` does, but for `off`, also as YAML reads it."""
    word = off_as_word(value)
    return word if word == "off" else to_seconds(value)


KeepAlive = Annotated[
    Annotated[float, Field(ge=0.1, le=LONGEST_SILENCE)] | Literal["off"] | None,
    Referable(_off_or_seconds, DURATION_PATTERN, "duration"),
]


class TimeoutsSection(Section):
    """Deadlines of one attempt. Each is inherited by itself."""

    connect: Timeout = Field(
        default=None,
        description=f"Until the connection stands, TLS included. Built in: {duration(defaults.CONNECT_TIMEOUT)}.",
    )
    first_event: Timeout = Field(
        default=None,
        description="From there to the first content of a streamed answer. "
        f"Built in: {duration(defaults.FIRST_EVENT_TIMEOUT)}.",
    )
    answer: Timeout = Field(
        default=None,
        description="Until an answer that is not streamed begins to come, which is when all of it has been generated. "
        f"Built in: {duration(defaults.ANSWER_TIMEOUT)}, or first_event where that is longer, while "
        "another target may be asked; otherwise what is left of total.",
    )
    idle: Timeout = Field(
        default=None,
        description=f"Longest silence between two pieces of an answer. Built in: {duration(defaults.IDLE_TIMEOUT)}.",
    )
    total: Timeout = Field(
        default=None,
        description="The whole request; for a stream it ends at the first content. A client's inference_timeout may "
        f"shorten it. Built in: {duration(defaults.TOTAL_TIMEOUT)}.",
    )
    progress: Timeout = Field(
        default=None,
        description="Longest time without content in a stream that has begun, whatever else comes. "
        f"Built in: {duration(defaults.PROGRESS_TIMEOUT)}.",
    )
    stream: Timeout = Field(
        default=None,
        description=f"A whole stream, from its first content. Built in: {duration(defaults.STREAM_TIMEOUT)}.",
    )
    keep_alive: KeepAlive = Field(
        default=None,
        description="Longest silence towards the client of a stream: then, and again after each such time, it gets a "
        "comment or ping. The first one carries the head with status 200, whatever follows; off sends none. "
        f"Built in: {duration(defaults.KEEP_ALIVE)}.",
    )
    keep_alive_json: OptionalSwitch = Field(
        default=None,
        description="Whether clients of responses that are not streamed get white space instead, before the JSON: "
        "their status is 200 then, and an error is the body. Built in: false.",
    )


def _distinct_names(headers: object) -> object:
    names = [str(name).lower() for name in headers] if isinstance(headers, dict) else []
    if len(set(names)) < len(names):
        raise refuse("two header names differ only in case")
    return headers


Headers = Annotated[dict[HeaderName, HeaderValue], BeforeValidator(_distinct_names)]


class DeploymentSettings(MaybeEmptySection):
    """What a deployment can be told. Deployment beats model beats vendor beats defaults, key by key."""

    api_key: Credential | None = Field(
        default=None,
        description='The credential for the upstream, best as "${VAR}" or "${file:PATH}". Empty: send none.',
    )
    credentials: CredentialsSection | None = Field(
        default=None,
        description="Instead of api_key: credentials that expire and are fetched again. aws, google, entra, or a "
        "mapping of one of these or oidc.",
    )
    out_of_service: OptionalSwitch = Field(
        default=None,
        description="Whether it gets no new requests, under every policy and by its own name; streams under way end as "
        "usual. Routes go on to their next target; a name that is left without one is refused with 503, and is not in "
        "lists of models. Built in: false.",
    )
    base_url: BaseUrl | None = Field(
        default=None,
        description="The upstream's address, instead of its profile's. Plain http only into the own network.",
    )
    allow_private: OptionalSwitch = Field(
        default=None, description="Whether base_url may lie in the own network or on this machine. Built in: false."
    )
    ca_file: OptionalText | None = Field(
        default=None,
        description="A PEM file with the authorities that may vouch for base_url's certificate, instead of the "
        "system's; relative to this file. Empty: the system's, which is built in.",
    )
    url_params: dict[UrlParamName, UrlParam] = Field(
        default={}, description="Values for the placeholders of the profile's address, such as resource or account_id."
    )
    api_version: Text | None = Field(
        default=None,
        description="The vendor's API version, where it has one (api-version, anthropic-version).",
    )
    headers: Headers = Field(
        default={},
        description="Further headers of every upstream request. Merged by name, ignoring case; values are secrets.",
    )
    timeouts: TimeoutsSection = Field(default=TimeoutsSection(), description="Deadlines of one attempt.")
    stream_upstream: StreamUpstream = Field(
        default=None,
        description="Whether an answer that is not streamed may be asked for as a stream, so that silence shows within "
        "first_event and idle: auto, where the answer is the same to the letter; off, never. "
        f"Built in: {defaults.STREAM_UPSTREAM}.",
    )
    retries: RetriesSection = Field(
        default=RetriesSection(), description="When a failed attempt is followed by another."
    )
    circuit_breaker: CircuitBreakerSection = Field(
        default=CircuitBreakerSection(), description="When the circuit of a deployment opens, and for how long."
    )
    concurrent: Concurrent = Field(
        default=None,
        description="Most requests that each deployment, of vendor/* each model, may have under way at once in each "
        f"process, streams until they end. Who finds no place within {duration(defaults.CONCURRENT_WAIT)} goes on "
        "to the next target, or gets 503. None written: no limit until the vendor says that it has too much.",
    )
    context_window: Tokens = Field(default=None, description="Most tokens of prompt and answer together.")
    max_output_tokens: Tokens = Field(
        default=None,
        description="Most tokens of an answer. A larger max_tokens of a client, under any name that reaches the "
        "vendor, is lowered to it, and named in x-dragoman-max-tokens. Where the vendor must be told a number "
        "(Anthropic, for one) it is that of clients who send no max_tokens. Built in: the model's, as far as models "
        "are known.",
    )
    price: PriceSetting | None = Field(
        default=None,
        description="What tokens cost, for budgets in USD, dragoman_cost_usd_total, the log and the ledger: auto, the "
        "vendor's list price; none; or prices of your own. Built in: auto, but none with allow_private.",
    )
    completions: OptionalSwitch = Field(
        default=None, description="Whether the model takes raw prompts. Built in: what its profile says."
    )
    on_unsupported: OnUnsupported = Field(
        default=None,
        description="A field the deployment cannot honour: error refuses the request by name, drop leaves the field "
        f"out and names it in x-dragoman-dropped. Built in: {defaults.ON_UNSUPPORTED}. guided_*, tools, n, logprobs, "
        "stop and response_format are never dropped; user, metadata and other fields that promise nothing about the "
        "answer are never refused.",
    )
    allow_fields: list[AllowedField] | None = Field(
        default=None,
        description="Fields that clients may send to an engine although they name a host, a path, a template or code, "
        "such as chat_template or lora_path, each with all that it holds. An engine is a deployment whose profile is "
        "one, or that has allow_private; other fields outside the unified request pass. Also instructions for a proxy, "
        "such as tags or num_retries, which no vendor gets otherwise. Built in: none.",
    )
    allow_headers: list[AllowedHeader] | None = Field(
        default=None,
        description="Names that clients may use in inference_extra_headers beside tracing and the vendors' documented "
        "switches; x-team-* stands for all that begin with x-team-. Built in: none.",
    )
    media: MediaSection = Field(
        default=MediaSection(), description="Which addresses of images, sounds, videos and files it may be sent."
    )
    input_type: Text | None = Field(
        default=None,
        description="What embedded texts are for where a client does not say: search_document, search_query, "
        "classification, clustering, or the vendor's own word. Cohere's models must be told. None written: nothing is "
        "said.",
    )
    cache: CacheSection | None = Field(
        default=None,
        description="Which answers are given again to equal requests; not for a deployment alone. Inherited as a "
        "whole. None written: none.",
    )
    affinity: AffinitySection | None = Field(
        default=None,
        description="Which requests go to the deployment that served their conversation before; not for a deployment "
        "alone. Inherited as a whole. Built in: auto.",
    )
    hedge: HedgeSection | None = Field(
        default=None,
        description="When a request that is late gets a second attempt at another deployment; not for a deployment "
        "alone. Inherited as a whole. Built in: off.",
    )
    context_length_exceeded_behavior: ContextBehavior = Field(
        default=None,
        description="For a client who does not say: truncate lowers max_tokens to what fits, error refuses what does "
        "not fit. Neither cuts the prompt. Built in: truncate on the surface fireworks, error on the others.",
    )


class VendorSection(DeploymentSettings):
    """A vendor, or one account at a vendor."""

    profile: ProfileName | None = Field(
        default=None,
        description="The profile: which dialect the vendor speaks, and how. Built in: the vendor's name.",
    )
    discover: Switch = Field(
        default=False,
        description="Whether the models list has what vendor/* stands for, from the vendor's own list. It is fetched "
        "when a client asks for the models list, and again after ten minutes, by each process for itself; it decides "
        "nothing about what may be asked for.",
    )
    limits: LimitsSection = Field(
        default=LimitsSection(), description="The most that all deployments of the vendor together may be asked for."
    )
    budget: TargetBudgets = Field(
        default_factory=list, description="What all deployments of the vendor together may cost: one budget, or a list."
    )


class DeploymentSection(DeploymentSettings):
    """One place where a model runs."""

    upstream_model: Text | None = Field(
        default=None, description="The model's name at the upstream. Built in: the model's."
    )
    base_model: Text | None = Field(
        default=None,
        description="The model that stands behind a name of your own, such as gpt-4o or openai/gpt-4o for a deployment "
        "of Azure's: its list price, its context window and what is known of it hold here. Built in: the model's own "
        "name.",
    )
    weight: Weight = Field(default=1, description=WEIGHT)
    limits: LimitsSection = Field(
        default=LimitsSection(),
        description="The most that this deployment may be asked for. A route skips what is at its limit.",
    )
    budget: TargetBudgets = Field(
        default_factory=list, description="What this deployment may cost: one budget, or a list."
    )


class ModelSection(DeploymentSettings):
    """A model of a vendor, or with the key vendor/* every model of that vendor."""

    upstream_model: Text | None = Field(
        default=None,
        description="The model's name at the upstream. Built in: what follows the vendor in the model string.",
    )
    base_model: Text | None = Field(
        default=None,
        description="The model that stands behind a name of your own, such as gpt-4o or openai/gpt-4o for a deployment "
        "of Azure's: its list price, its context window and what is known of it hold here. Built in: the model's own "
        "name.",
    )
    policy: Policy = Field(default="priority", description=f"In which order the deployments are tried. {POLICIES}")
    limits: LimitsSection = Field(
        default=LimitsSection(),
        description="The most that all deployments of the model together may be asked for; of vendor/* all its models.",
    )
    budget: TargetBudgets = Field(
        default_factory=list,
        description="What all deployments of the model together may cost: one budget, or a list; of vendor/* all its "
        "models.",
    )
    deployments: dict[DeploymentName, DeploymentSection] = Field(
        default={}, description="Where the model runs, by name. None listed: one deployment named default."
    )
    listed: Switch = Field(default=True, description=LISTED)


class GatewayConfig(Section):
    """A routing table."""

    version: Literal[1] = Field(description="Version of the table's format.")
    server: ServerSection = Field(
        default=ServerSection(), description="Where the gateway listens, and how it starts and stops."
    )
    defaults: DeploymentSettings = Field(default=DeploymentSettings(), description="Settings of every deployment.")
    vendors: dict[VendorName, VendorSection] = Field(
        default={}, description="The vendors, by the name that starts a model string."
    )
    models: dict[ModelKey, ModelSection] = Field(default={}, description="The models, by vendor/model or vendor/*.")
    routes: dict[RouteName, RouteSection] = Field(default={}, description="Names of our own, over models.")
    limits: LimitsSection = Field(
        default=LimitsSection(), description="The most that all clients together may use, of whatever team."
    )
    budget: Budgets = Field(
        default_factory=list,
        description="What all clients together may spend: one budget, or a list of them, which all hold.",
    )
    each_user: EachUserSection | None = Field(
        default=None,
        description="Limits and budgets of each end user of every team without an each_user of its own. Built in: no "
        "limits.",
    )
    teams: dict[TeamName, TeamSection] = Field(
        default={}, description="Who may call. Without teams everybody may, and the gateway listens on loopback only."
    )
    plugins: dict[PluginName, PluginSection] = Field(
        default={},
        description="Code of your own: guards of requests and answers, which hold for every team in this order unless "
        "the team lists its own, and sinks of what was used, which get every request.",
    )
