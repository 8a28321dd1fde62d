"""The configuration as frozen pydantic models, one for each section.

Only keys that the gateway acts on are accepted. The docstrings and descriptions of the models are the operator's
reference: editors and the README show them.
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
"""The most seconds between two keep-alives: one day, like the most seconds of any deadline."""


def _off_or_seconds(value: object) -> object:
    """Convert text to seconds as `to_seconds` does, but return `off` for `off`, which YAML reads as false."""
    word = off_as_word(value)
    return word if word == "off" else to_seconds(value)


KeepAlive = Annotated[
    Annotated[float, Field(ge=0.1, le=LONGEST_SILENCE)] | Literal["off"] | None,
    Referable(_off_or_seconds, DURATION_PATTERN, "duration"),
]


class TimeoutsSection(Section):
    """Deadlines of one attempt. Each is inherited by itself."""

    connect: Timeout = setting("Until the connection is established, including TLS.", built_in="5s")
    first_event: Timeout = setting("From the connection to the first content of a streamed response.", built_in="60s")
    answer: Timeout = setting(
        "Until a non-streaming response begins, which is when all of it has been generated. Built in: {built_in}, or "
        "first_event if that is longer, while another target may be tried; otherwise the rest of total.",
        # Without another target there is no such deadline: a response begins when all of it has been generated, so a
        # slow response cannot be distinguished from a response that never comes.
        built_in="120s",
        resolved=False,
    )
    idle: Timeout = setting("Longest silence between two chunks of a response.", built_in="120s")
    total: Timeout = setting(
        "The whole request; for a stream it ends at the first content. A client's inference_timeout may shorten it.",
        built_in="600s",
    )
    progress: Timeout = setting(
        "Longest time without content in a stream that has begun, even if other events come.", built_in="600s"
    )
    stream: Timeout = setting("A whole stream, from its first content.", built_in="1h")
    keep_alive: KeepAlive = setting(
        "Longest silence towards the client of a stream. After it, and again after each such time, the client "
        "gets a comment or ping. The first one is sent with the headers and status 200, even if an error follows; "
        "off sends none.",
        built_in="20s",  # a third of the 60 s after which load balancers close a silent connection
    )
    keep_alive_json: OptionalSwitch = setting(
        "Whether clients of non-streaming responses get white space instead, before the JSON. Their status is 200 "
        "then, and an error is in the body.",
        built_in=False,
    )


def _distinct_names(headers: object) -> object:
    names = [str(name).lower() for name in headers] if isinstance(headers, dict) else []
    if len(set(names)) < len(names):
        raise refuse("two header names differ only in case")
    return headers


Headers = Annotated[dict[HeaderName, HeaderValue], BeforeValidator(_distinct_names)]


class DeploymentSettings(MaybeEmptySection):
    """Settings of deployments. For each key, the deployment's value overrides the model's, the model's overrides the
    vendor's, and the vendor's overrides the value in defaults."""

    api_key: Credential | None = setting(
        'The credential for the upstream, best as "${VAR}" or "${file:PATH}". Empty: no credential is sent.'
    )
    credentials: CredentialsSection | None = setting(
        "Instead of api_key: credentials that expire and are fetched again. aws, google, entra, or a mapping of "
        "one of these or oidc.",
        instead_of="api_key",
    )
    out_of_service: OptionalSwitch = setting(
        "Whether the deployment gets no new requests, under every policy and by its own name. Streams in flight "
        "end normally. Routes go on to their next target. A name without any other deployment is refused with "
        "503, and is not in lists of models.",
        built_in=False,
    )
    base_url: BaseUrl | None = setting(
        "The upstream's address, instead of its profile's. Plain http only to the operator's own network."
    )
    allow_private: OptionalSwitch = setting(
        "Whether base_url may be in the operator's own network or on this machine.", built_in=False
    )
    ca_file: OptionalText | None = setting(
        "A PEM file with the authorities that may sign base_url's certificate, instead of the system's; relative "
        "to this file. Empty: the system's authorities, which is also the built-in value."
    )
    url_params: dict[UrlParamName, UrlParam] = setting(
        "Values for the placeholders of the profile's address, such as resource or account_id.", default={}
    )
    api_version: Text | None = setting(
        "The vendor's API version, if the vendor has versions (api-version, anthropic-version)."
    )
    headers: Headers = setting(
        "Further headers of every upstream request. Merged by name, ignoring case; values are secrets.", default={}
    )
    timeouts: TimeoutsSection = setting("Deadlines of one attempt.", default=TimeoutsSection())
    stream_upstream: StreamUpstream = setting(
        "Whether a non-streaming response may be requested as a stream, so that silence is noticed within first_event "
        "and idle. auto: if the response is exactly the same; off: never.",
        built_in="off",  # every chunk of a stream costs processor time; one whole body costs far less
    )
    retries: RetriesSection = setting("When a failed attempt is followed by another.", default=RetriesSection())
    circuit_breaker: CircuitBreakerSection = setting(
        "When the circuit of a deployment opens, and for how long.", default=CircuitBreakerSection()
    )
    concurrent: Concurrent = setting(
        f"The most requests in flight at once for each deployment in each process; under vendor/*, for each "
        f"model. A stream counts until it ends. A request that gets no slot within {duration(CONCURRENT_WAIT)} "
        f"goes on to the next target, or gets 503. None written: no limit until the vendor reports that it is "
        f"overloaded."
    )
    context_window: Tokens = setting("The most tokens of prompt and response together.")
    max_output_tokens: Tokens = setting(
        "The most tokens of a response. A client's larger max_tokens, under any name that reaches the vendor, is "
        "lowered to it and reported in x-dragoman-max-tokens. For clients that send no max_tokens it is the value "
        "sent to vendors that require one, such as Anthropic. Built in: the model's, if the model is known."
    )
    price: PriceSetting | None = setting(
        "The price of tokens, for budgets in USD, dragoman_cost_usd_total, the log and the ledger: auto, the "
        "vendor's list price; none; or prices of your own. Built in: auto, but none with allow_private."
    )
    completions: OptionalSwitch = setting("Whether the model takes raw prompts. Built in: as its profile has it.")
    on_unsupported: OnUnsupported = setting(
        "The action for a field that the deployment does not support: error refuses the request and names the "
        "field, drop leaves the field out and names it in x-dragoman-dropped. Built in: {built_in}. guided_*, "
        "tools, n, logprobs, stop and response_format are never dropped. user, metadata and other fields that do "
        "not affect the response are never refused.",
        built_in="error",
    )
    allow_fields: list[AllowedField] | None = setting(
        "Fields that clients may send to an engine although they name a host, a path, a template or code, such as "
        "chat_template or lora_path; each with everything in it. An engine is a deployment whose profile is one, "
        "or that has allow_private. Other fields outside the unified request are passed on. Also instructions for "
        "a proxy, such as tags or num_retries, which no vendor gets otherwise. Built in: none."
    )
    allow_headers: list[AllowedHeader] | None = setting(
        "Names that clients may use in inference_extra_headers besides tracing and the vendors' documented "
        "switches. x-team-* matches all names that begin with x-team-. Built in: none."
    )
    media: MediaSection = setting(
        "Which addresses of images, sounds, videos and files may be sent to the deployment.", default=MediaSection()
    )
    input_type: Text | None = setting(
        "The purpose of embedded texts if the client sends none: search_document, search_query, classification, "
        "clustering, or the vendor's own word. Cohere's models require one. None written: none is sent."
    )
    cache: CacheSection | None = setting(
        "Which responses are cached for equal requests. It has no effect on a deployment alone. Inherited as a "
        "whole. None written: none."
    )
    affinity: AffinitySection | None = setting(
        "Which requests go to the deployment that served their conversation before. It has no effect on a "
        "deployment alone. Inherited as a whole. Built in: auto."
    )
    hedge: HedgeSection | None = setting(
        "When a late request gets a second attempt at another deployment. It has no effect on a deployment alone. "
        "Inherited as a whole. Built in: off."
    )
    context_length_exceeded_behavior: ContextBehavior = setting(
        "For clients that send none: truncate lowers max_tokens to the tokens that fit, error refuses a request "
        "that does not fit. Neither cuts the prompt. Built in: truncate on the surface fireworks, error on the "
        "others."
    )


class VendorSection(DeploymentSettings):
    """A vendor, or one account at a vendor."""

    profile: ProfileName | None = Field(
        default=None,
        description="The profile: which dialect the vendor uses, with its deviations. Built in: the vendor's name.",
    )
    discover: Switch = Field(
        default=False,
        description="Whether the list of models has the models that vendor/* stands for, from the vendor's own list. "
        "Each process fetches it for itself when a client requests the list of models, and again after ten minutes. "
        "It does not affect which models may be requested.",
    )
    limits: LimitsSection = Field(
        default=LimitsSection(), description="The most that may be used of all deployments of the vendor together."
    )
    budget: TargetBudgets = Field(
        default_factory=list,
        description="The most that all deployments of the vendor together may cost: one budget, or a list.",
    )


class ModelSettings(DeploymentSettings):
    """The settings of a model that its deployments inherit."""

    upstream_model: Text | None = setting(
        "The model's name at the upstream. Built in: the part of the model string after the vendor."
    )
    base_model: Text | None = setting(
        "The model behind a name of your own, such as gpt-4o or openai/gpt-4o for a deployment at Azure. Its list "
        "price, context window and other known facts apply here. Built in: the model's own name."
    )


class DeploymentSection(ModelSettings):
    """One endpoint that serves a model."""

    upstream_model: Text | None = setting("The model's name at the upstream. Built in: the model's upstream_model.")
    weight: Weight = Field(default=1, description=WEIGHT)
    limits: LimitsSection = Field(
        default=LimitsSection(),
        description="The most that may be used of this deployment. A route skips a deployment that is at its limit.",
    )
    budget: TargetBudgets = Field(
        default_factory=list, description="The most that this deployment may cost: one budget, or a list."
    )


class ModelSection(ModelSettings):
    """A model of a vendor or, with the key vendor/*, every model of that vendor."""

    policy: Policy = Field(default="priority", description=f"The order in which the deployments are tried. {POLICIES}")
    limits: LimitsSection = Field(
        default=LimitsSection(),
        description="The most that may be used of all deployments of the model together; under vendor/*, of all its "
        "models together.",
    )
    budget: TargetBudgets = Field(
        default_factory=list,
        description="The most that all deployments of the model together may cost: one budget, or a list; under "
        "vendor/*, of all its models together.",
    )
    deployments: dict[DeploymentName, DeploymentSection] = Field(
        default={}, description="The deployments of the model, by name. Empty: one deployment named default."
    )
    listed: Switch = Field(default=True, description=LISTED)


class GatewayConfig(Section):
    """A configuration of the gateway."""

    version: Literal[1] = Field(description="Version of the configuration's format.")
    server: ServerSection = Field(
        default=ServerSection(), description="Where the gateway listens, and how it starts and stops."
    )
    defaults: DeploymentSettings = Field(default=DeploymentSettings(), description="Settings of every deployment.")
    vendors: dict[VendorName, VendorSection] = Field(
        default={}, description="The vendors, by the name that starts a model string."
    )
    models: dict[ModelKey, ModelSection] = Field(default={}, description="The models, by vendor/model or vendor/*.")
    routes: dict[RouteName, RouteSection] = Field(default={}, description="Your own names for models.")
    limits: LimitsSection = Field(
        default=LimitsSection(), description="The most that all clients of all teams may use together."
    )
    budget: Budgets = Field(
        default_factory=list,
        description="The most that all clients together may spend: one budget, or a list of budgets that all apply.",
    )
    each_user: EachUserSection | None = Field(
        default=None,
        description="Limits and budgets of each end user, for every team without an each_user of its own. Built in: no "
        "limits.",
    )
    teams: dict[TeamName, TeamSection] = Field(
        default={},
        description="The teams that may call. Without teams every client may, and the gateway listens on loopback "
        "only.",
    )
    plugins: dict[PluginName, PluginSection] = Field(
        default={},
        description="Code of your own. Guards check requests and responses; they apply to every team, in this order, "
        "unless the team lists its own. Sinks get the usage of every request.",
    )
