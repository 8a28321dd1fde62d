"""The routing table as frozen pydantic models, one for each section.

Only keys that the gateway acts on are accepted. Docstrings and descriptions of the models are the operator's reference:
editors and the README show them.
"""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from config.sections.affinity_section import AffinitySection
from config.sections.cache_section import CacheSection
from config.sections.credentials_section import CredentialsSection
from config.sections.failover_section import CircuitBreakerSection, HedgeSection, RetriesSection
from config.sections.limits_section import (
    CONCURRENT_WAIT,
    Budgets,
    Concurrent,
    EachUserSection,
    LimitsSection,
    TargetBudgets,
)
from config.sections.media_section import MediaSection
from config.sections.plugins_section import PluginName, PluginSection
from config.sections.price_section import PriceSetting
from config.sections.route_section import LISTED, POLICIES, WEIGHT, RouteSection
from config.sections.section import MaybeEmptySection, Section, setting
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
from config.units import duration

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

    connect: Timeout = setting("Until the connection stands, TLS included.", built_in="5s")
    first_event: Timeout = setting("From there to the first content of a streamed answer.", built_in="60s")
    answer: Timeout = setting(
        "Until an answer that is not streamed begins to come, which is when all of it has been generated. "
        "Built in: {built_in}, or first_event where that is longer, while "
        "another target may be asked; otherwise what is left of total.",
        # Not without another target: a response begins when all of it has been generated, so a slow one looks like one
        # that hangs.
        built_in="120s",
        resolved=False,
    )
    idle: Timeout = setting("Longest silence between two pieces of an answer.", built_in="120s")
    total: Timeout = setting(
        "The whole request; for a stream it ends at the first content. A client's inference_timeout may shorten it.",
        built_in="600s",
    )
    progress: Timeout = setting(
        "Longest time without content in a stream that has begun, whatever else comes.", built_in="600s"
    )
    stream: Timeout = setting("A whole stream, from its first content.", built_in="1h")
    keep_alive: KeepAlive = setting(
        "Longest silence towards the client of a stream: then, and again after each such time, it gets a "
        "comment or ping. The first one carries the head with status 200, whatever follows; off sends none.",
        built_in="20s",  # a third of the 60 s after which load balancers close a silent connection
    )
    keep_alive_json: OptionalSwitch = setting(
        "Whether clients of responses that are not streamed get white space instead, before the JSON: "
        "their status is 200 then, and an error is the body.",
        built_in=False,
    )


def _distinct_names(headers: object) -> object:
    names = [str(name).lower() for name in headers] if isinstance(headers, dict) else []
    if len(set(names)) < len(names):
        raise refuse("two header names differ only in case")
    return headers


Headers = Annotated[dict[HeaderName, HeaderValue], BeforeValidator(_distinct_names)]


class DeploymentSettings(MaybeEmptySection):
    """What a deployment can be told. Deployment beats model beats vendor beats defaults, key by key."""

    api_key: Credential | None = setting(
        'The credential for the upstream, best as "${VAR}" or "${file:PATH}". Empty: send none.'
    )
    credentials: CredentialsSection | None = setting(
        "Instead of api_key: credentials that expire and are fetched again. aws, google, entra, or a "
        "mapping of one of these or oidc.",
        instead_of="api_key",
    )
    out_of_service: OptionalSwitch = setting(
        "Whether it gets no new requests, under every policy and by its own name; streams under way end as "
        "usual. Routes go on to their next target; a name that is left without one is refused with 503, and is not in "
        "lists of models.",
        built_in=False,
    )
    base_url: BaseUrl | None = setting(
        "The upstream's address, instead of its profile's. Plain http only into the own network."
    )
    allow_private: OptionalSwitch = setting(
        "Whether base_url may lie in the own network or on this machine.", built_in=False
    )
    ca_file: OptionalText | None = setting(
        "A PEM file with the authorities that may vouch for base_url's certificate, instead of the "
        "system's; relative to this file. Empty: the system's, which is built in."
    )
    url_params: dict[UrlParamName, UrlParam] = setting(
        "Values for the placeholders of the profile's address, such as resource or account_id.", default={}
    )
    api_version: Text | None = setting("The vendor's API version, where it has one (api-version, anthropic-version).")
    headers: Headers = setting(
        "Further headers of every upstream request. Merged by name, ignoring case; values are secrets.", default={}
    )
    timeouts: TimeoutsSection = setting("Deadlines of one attempt.", default=TimeoutsSection())
    stream_upstream: StreamUpstream = setting(
        "Whether an answer that is not streamed may be asked for as a stream, so that silence shows within "
        "first_event and idle: auto, where the answer is the same to the letter; off, never.",
        built_in="off",  # every chunk of a stream costs processor time; one whole body costs far less
    )
    retries: RetriesSection = setting("When a failed attempt is followed by another.", default=RetriesSection())
    circuit_breaker: CircuitBreakerSection = setting(
        "When the circuit of a deployment opens, and for how long.", default=CircuitBreakerSection()
    )
    concurrent: Concurrent = setting(
        "Most requests that each deployment, of vendor/* each model, may have under way at once in each "
        f"process, streams until they end. Who finds no place within {duration(CONCURRENT_WAIT)} goes on "
        "to the next target, or gets 503. None written: no limit until the vendor says that it has too much."
    )
    context_window: Tokens = setting("Most tokens of prompt and answer together.")
    max_output_tokens: Tokens = setting(
        "Most tokens of an answer. A larger max_tokens of a client, under any name that reaches the "
        "vendor, is lowered to it, and named in x-dragoman-max-tokens. Where the vendor must be told a number "
        "(Anthropic, for one) it is that of clients who send no max_tokens. Built in: the model's, as far as models "
        "are known."
    )
    price: PriceSetting | None = setting(
        "What tokens cost, for budgets in USD, dragoman_cost_usd_total, the log and the ledger: auto, the "
        "vendor's list price; none; or prices of your own. Built in: auto, but none with allow_private."
    )
    completions: OptionalSwitch = setting("Whether the model takes raw prompts. Built in: what its profile says.")
    on_unsupported: OnUnsupported = setting(
        "A field the deployment cannot honour: error refuses the request by name, drop leaves the field "
        "out and names it in x-dragoman-dropped. Built in: {built_in}. guided_*, tools, n, logprobs, "
        "stop and response_format are never dropped; user, metadata and other fields that promise nothing about the "
        "answer are never refused.",
        built_in="error",
    )
    allow_fields: list[AllowedField] | None = setting(
        "Fields that clients may send to an engine although they name a host, a path, a template or code, "
        "such as chat_template or lora_path, each with all that it holds. An engine is a deployment whose profile is "
        "one, or that has allow_private; other fields outside the unified request pass. Also instructions for a proxy, "
        "such as tags or num_retries, which no vendor gets otherwise. Built in: none."
    )
    allow_headers: list[AllowedHeader] | None = setting(
        "Names that clients may use in inference_extra_headers beside tracing and the vendors' documented "
        "switches; x-team-* stands for all that begin with x-team-. Built in: none."
    )
    media: MediaSection = setting(
        "Which addresses of images, sounds, videos and files it may be sent.", default=MediaSection()
    )
    input_type: Text | None = setting(
        "What embedded texts are for where a client does not say: search_document, search_query, "
        "classification, clustering, or the vendor's own word. Cohere's models must be told. None written: nothing is "
        "said."
    )
    cache: CacheSection | None = setting(
        "Which answers are given again to equal requests; not for a deployment alone. Inherited as a "
        "whole. None written: none."
    )
    affinity: AffinitySection | None = setting(
        "Which requests go to the deployment that served their conversation before; not for a deployment "
        "alone. Inherited as a whole. Built in: auto."
    )
    hedge: HedgeSection | None = setting(
        "When a request that is late gets a second attempt at another deployment; not for a deployment "
        "alone. Inherited as a whole. Built in: off."
    )
    context_length_exceeded_behavior: ContextBehavior = setting(
        "For a client who does not say: truncate lowers max_tokens to what fits, error refuses what does "
        "not fit. Neither cuts the prompt. Built in: truncate on the surface fireworks, error on the others."
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


class ModelSettings(DeploymentSettings):
    """The settings of a model that its deployments inherit."""

    upstream_model: Text | None = setting(
        "The model's name at the upstream. Built in: what follows the vendor in the model string."
    )
    base_model: Text | None = setting(
        "The model that stands behind a name of your own, such as gpt-4o or openai/gpt-4o for a deployment of Azure's: "
        "its list price, its context window and what is known of it hold here. Built in: the model's own name."
    )


class DeploymentSection(ModelSettings):
    """One place where a model runs."""

    upstream_model: Text | None = setting("The model's name at the upstream. Built in: the model's.")
    weight: Weight = Field(default=1, description=WEIGHT)
    limits: LimitsSection = Field(
        default=LimitsSection(),
        description="The most that this deployment may be asked for. A route skips what is at its limit.",
    )
    budget: TargetBudgets = Field(
        default_factory=list, description="What this deployment may cost: one budget, or a list."
    )


class ModelSection(ModelSettings):
    """A model of a vendor, or with the key vendor/* every model of that vendor."""

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
