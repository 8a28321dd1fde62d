"""The `server` section: listeners, processes, limits, shutdown. The defaults are written at the fields."""

from collections.abc import Callable
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from config.sections.ledger_section import LedgerSection
from config.sections.limits_section import Count
from config.sections.log_section import LogSection, PayloadLogSection
from config.sections.section import Section
from config.sections.tracing_section import TracingSection
from config.sections.value_types import (
    REFERENCE_PATTERN,
    Checked,
    Credential,
    Duration,
    Host,
    Lifetime,
    NamedVendor,
    Port,
    RedisUrl,
    SharedPrefix,
    Size,
    Switch,
    TargetName,
    Text,
    TimeZone,
    Workers,
    refuse,
)
from config.web_origins import normal_host, normal_origin

_SHORTEST_STALL: Final = 1.0
"""The least seconds of this setting. The event loop of a process that starts, or writes a large response, may block for
parts of a second."""

StorageLocation = Literal["shared", "process", "off"]

SurfaceName = Literal["openai", "scale", "fireworks", "pais", "anthropic", "responses"]


def _credential_or_none(value: object) -> object:
    return None if value == "" else value


def _as_field_check(normal: Callable[[str], str]) -> Callable[[str], str]:
    """Turn the ValueError of a function into the error of a field."""

    def check(value: str) -> str:
        try:
            return normal(value)
        except ValueError as error:
            raise refuse(str(error)) from None

    return check


def _check_stall_limit(seconds: float) -> float:
    if 0 < seconds < _SHORTEST_STALL:
        raise refuse("must be at least 1s, or 0 for never")
    return seconds


StallLimit = Annotated[Duration, AfterValidator(_check_stall_limit)]
HostPattern = Annotated[str, Checked(_as_field_check(normal_host))]
AllowedOrigin = Annotated[
    str,
    Checked(
        _as_field_check(normal_origin), {"pattern": rf"^\*$|^[A-Za-z][A-Za-z0-9+.-]*://[^/]*$|{REFERENCE_PATTERN}"}
    ),
]
OptionalToken = Annotated[Credential | None, BeforeValidator(_credential_or_none)]


TaskName = Literal["embeddings", "rerank", "moderations", "transcriptions", "speech", "images"]


ReasoningField = Literal["reasoning_content", "reasoning", "both"]


class SurfaceSettings(Section):
    """The defaults of a surface for its clients."""

    default_vendor: NamedVendor | None = Field(default=None, description="The vendor of a model name without a vendor.")
    default_model: TargetName | None = Field(default=None, description="The model of a request that names none.")
    reasoning_field: ReasoningField = Field(
        default="reasoning_content",
        description="The field of a chat's messages and deltas that holds the model's reasoning. Requests may use "
        "either.",
    )
    task_models: dict[TaskName, TargetName] = Field(
        default={},
        description="The model by task: clients of moderations and of images often name no model.",
    )


class AdminSection(Section):
    """The listener for the operator's page, metrics, health, status and reload."""

    host: Host = Field(
        default="127.0.0.1", description="Address to listen on. An address other than loopback needs a token."
    )
    port: Port = Field(default=9091, description="Port to listen on; 0 takes a free one.")
    token: OptionalToken = Field(
        default=None,
        description="Token that callers must send: as Bearer, or from a browser as a password. Empty: none.",
    )
    hosts: list[HostPattern] = Field(default=[], description="As server.hosts, for the admin listener.")


class TlsSection(Section):
    """The certificate of the public listener, which then accepts only HTTPS, with TLS 1.2 or newer. A reload reads the
    files again; existing connections continue."""

    cert: Text = Field(
        description="A PEM file, relative to this file: the certificate, and after it the certificates up to its "
        "authority."
    )
    key: Text = Field(description="A PEM file, relative to this file: the certificate's key, without a passphrase.")


class CorsSection(Section):
    """Which web pages may call the public listener. A request with another Origin gets 403, unless it is the listener's
    own. Cookies are never accepted; pages send a key like every client."""

    origins: list[AllowedOrigin] = Field(
        default=[],
        description="Origins as browsers send them, such as https://app.example.com. http://localhost:* is any port, "
        "chrome-extension://* any host of a scheme other than http and https, and * any page, which needs teams.",
    )


class ServerLimits(Section):
    """The most that one process accepts at once. Further requests get 503 at once, without being read."""

    requests: Count = Field(
        default=2000,
        description="Requests whose response has not begun. While a process has no CPU time left it accepts fewer: "
        "about 1,000 that come at once, then only as many as it can begin within 0.3s (`queue` in "
        "`dragoman_shed_total`).",
    )
    streams: Count = Field(default=4000, description="Streams that have begun.")
    body_bytes: Size = Field(
        default=256 * 2**20,
        description="Request bodies in memory together, such as 256MiB. A larger body is read only while there is no "
        "other. At the limit, a team (without teams: an address) that uses less than its share is still accepted, up "
        "to twice as much in all.",
    )


class KeepResponsesSection(Section):
    """The stored responses of the Responses API. By that API a response is stored unless the client turns it off, so
    that the next request can name the response that it continues. A team can use only its own responses; without teams,
    an address can. At `shared` the responses of one owner take up to 64 MiB. A response of more than 8 MiB is not
    stored."""

    where: StorageLocation = Field(
        default="shared",
        description="Where responses are stored: in each process and at `server.shared` if that is written, in each "
        "`process` alone, or nowhere (off). With off, a request that continues a response is refused. Several "
        "processes need `server.shared`: without it each process finds only the responses that it stored itself.",
    )
    lifetime: Lifetime = Field(
        default=86400.0, description="How long a response is stored after it was created or last used, 30d at most."
    )
    memory: Size = Field(
        default=64 * 2**20,
        description="The most memory of stored responses in one process, such as 64MiB. The team with the most loses "
        "its oldest first.",
    )


class SharedSection(Section):
    """The state that the processes behind one name share: rate limits of vendors, refused credentials and spent quotas
    of vendors; and the remaining limits and budgets, which they count together. Few requests wait for it: each process
    reserves a part of a limit in advance, and continues with its share while Redis is unavailable. Needs the extra
    `redis`, and Redis 6.2 or newer."""

    redis: RedisUrl = Field(
        description="The address: redis://, rediss:// (TLS) or unix://, with user, password and database if needed; "
        'best as "${REDIS_URL}".'
    )
    prefix: SharedPrefix = Field(
        default="dragoman",
        description="The prefix of the keys in Redis. Processes with the same prefix share their state. Credentials "
        "that are fetched count as the same if their settings are the same.",
    )


class ServerSection(Section):
    """The gateway itself."""

    host: Host = Field(
        default="127.0.0.1", description="Address to listen on. Without teams only loopback is accepted."
    )
    port: Port = Field(default=8080, description="Port to listen on; 0 takes a free one.")
    workers: Workers = Field(
        default=1,
        description="Processes that take requests. auto: as many as there are usable cores, with regard to the CPU "
        "limit of a container. With more processes than cores no more requests are served, and the log warns of it. "
        "Limits and budgets count all processes together; the failures of deployments, and the setting concurrent, "
        "are counted by each process for itself. 1: one process does everything.",
    )
    hosts: list[HostPattern] = Field(
        default=[],
        description="Names under which clients call the public listener, without port; *.example.com is any name below "
        "example.com. On loopback they are added to the loopback names (localhost, 127.0.0.1, [::1]), and another "
        "Host gets 421, so that no web page can call the gateway under a name of its own (DNS rebinding). "
        "Therefore list the names that a reverse proxy passes on. On another address the Host is checked only if "
        "names are listed; addresses and loopback names are accepted there too.",
    )
    cors: CorsSection = Field(default=CorsSection(), description="Which web pages may call the public listener.")
    tls: TlsSection | None = Field(
        default=None, description="The public listener's certificate. None written: plain HTTP."
    )
    admin: AdminSection = Field(default=AdminSection(), description="The admin listener.")
    max_body: Size = Field(default=32 * 2**20, description="Largest request body, such as 32MiB.")
    limits: ServerLimits = Field(default=ServerLimits(), description="The most that one process accepts at once.")
    shared: SharedSection | None = Field(
        default=None,
        description="Where several gateways count together and share the reports of vendors. None written: each "
        "gateway counts by itself, with all its workers.",
    )
    ledger: LedgerSection = Field(
        default=LedgerSection(), description="Where the usage of teams is recorded; off: nowhere."
    )
    timezone: TimeZone = Field(
        default="UTC",
        description="The zone, such as Europe/Berlin, in which hours, days, weeks and months of limits and budgets "
        "begin.",
    )
    keep_thinking: StorageLocation = Field(
        default="shared",
        description="Where the reasoning of models before tool calls, and the signatures of Gemini's texts, are "
        "stored for an hour. They are used for clients that do not send them back although the vendor requires them. "
        "In each process and at `shared` if that is written, in each `process` alone, or nowhere (off).",
    )
    keep_responses: KeepResponsesSection = Field(
        default=KeepResponsesSection(), description="Where responses are stored, and for how long."
    )
    drain_grace: Duration = Field(
        default=1.0, description="On shutdown: the time from reporting not ready to closing the listener."
    )
    drain_timeout: Duration = Field(
        default=600.0, description="On shutdown: the time in which running requests may finish."
    )
    stall_limit: StallLimit = Field(
        default=30.0,
        description="How long the event loop of a process may be blocked before the process is ended and, with "
        "workers, replaced; 1s at least. 0: never, for a debugger.",
    )
    watch: Switch = Field(
        default=True, description="Check the files of the configuration every 5 s, and reload if they have changed."
    )
    log: LogSection = Field(
        default=LogSection(), description="The log lines: their form, and which good requests get one."
    )
    receipt: Switch = Field(
        default=False,
        description="Send the durations of the parts of a request in a `Server-Timing` header of each response. The "
        "log's JSON lines and spans have them too.",
    )
    payload_log: PayloadLogSection | None = Field(
        default=None, description="Where prompts and responses are recorded. None written: nowhere."
    )
    tracing: TracingSection | None = Field(
        default=None, description="Where traces are sent. None written: nowhere, and nothing is traced."
    )
    surfaces: dict[SurfaceName, SurfaceSettings] = Field(default={}, description="Settings of single surfaces.")
