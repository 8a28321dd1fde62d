"""The `server` section of the table: listeners, processes, limits, shutdown. Its defaults stand at the fields."""

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
"""Seconds; the event loop of a process that starts, or writes a large answer, may block for parts of one."""

KeptWhere = Literal["shared", "process", "off"]

SurfaceName = Literal["openai", "scale", "fireworks", "pais", "anthropic", "responses"]


def _credential_or_none(value: object) -> object:
    return None if value == "" else value


def _refusing(normal: Callable[[str], str]) -> Callable[[str], str]:
    """Turn the ValueError of a function into the error of a field."""

    def check(value: str) -> str:
        try:
            return normal(value)
        except ValueError as error:
            raise refuse(str(error)) from None

    return check


def _long_enough_to_work(seconds: float) -> float:
    if 0 < seconds < _SHORTEST_STALL:
        raise refuse("must be at least 1s, or 0 for never")
    return seconds


StallLimit = Annotated[Duration, AfterValidator(_long_enough_to_work)]
HostPattern = Annotated[str, Checked(_refusing(normal_host))]
AllowedOrigin = Annotated[
    str,
    Checked(_refusing(normal_origin), {"pattern": rf"^\*$|^[A-Za-z][A-Za-z0-9+.-]*://[^/]*$|{REFERENCE_PATTERN}"}),
]
OptionalToken = Annotated[Credential | None, BeforeValidator(_credential_or_none)]


TaskName = Literal["embeddings", "rerank", "moderations", "transcriptions", "speech", "images"]


ReasoningField = Literal["reasoning_content", "reasoning", "both"]


class SurfaceSettings(Section):
    """What a surface assumes for its clients."""

    default_vendor: NamedVendor | None = Field(default=None, description="The vendor of a model name that has none.")
    default_model: TargetName | None = Field(default=None, description="The model of a request that names none.")
    reasoning_field: ReasoningField = Field(
        default="reasoning_content",
        description="The field of a chat's messages and deltas that holds the model's reasoning. Requests may have "
        "either.",
    )
    task_models: dict[TaskName, TargetName] = Field(
        default={},
        description="The same by task: clients of moderations and of images often name no model.",
    )


class AdminSection(Section):
    """The listener for the operator's page, metrics, health, status and reload."""

    host: Host = Field(default="127.0.0.1", description="Address to listen on. Another than loopback needs a token.")
    port: Port = Field(default=9091, description="Port to listen on; 0 takes a free one.")
    token: OptionalToken = Field(
        default=None,
        description="Token that callers must send: as Bearer, or from a browser as a password. Empty: none.",
    )
    hosts: list[HostPattern] = Field(default=[], description="As server.hosts, for the admin listener.")


class TlsSection(Section):
    """What the public listener proves itself with, and it takes HTTPS alone then: TLS 1.2 or newer. A reload takes the
    files anew; connections that stand go on."""

    cert: Text = Field(
        description="A PEM file, relative to this file: the certificate, and after it those up to its authority."
    )
    key: Text = Field(description="A PEM file, relative to this file: the certificate's key, without a passphrase.")


class CorsSection(Section):
    """Which web pages may call the public listener. A request with the Origin of any other gets 403, unless it is the
    listener's own. Cookies are never taken; pages send a key like everybody else."""

    origins: list[AllowedOrigin] = Field(
        default=[],
        description="Origins as browsers send them, such as https://app.example.com; http://localhost:* is any port, "
        "chrome-extension://* any host of a scheme that is not the web's, * any page, which needs teams.",
    )


class ServerLimits(Section):
    """The most that one process takes on at once; what is beyond it gets 503 at once, without being read."""

    requests: Count = Field(
        default=2000,
        description="Requests whose answer has not begun. While a process has no CPU time left it takes fewer: "
        "about 1,000 that come at once, then no more than it can begin within 0.3s (`queue` in `dragoman_shed_total`).",
    )
    streams: Count = Field(default=4000, description="Streams that have begun.")
    body_bytes: Size = Field(
        default=256 * 2**20,
        description="Request bodies in memory together, such as 256MiB. A larger one comes alone. Where they are full, "
        "a team (without teams: an address) with less than its share goes on, up to twice as much in all.",
    )


class KeepResponsesSection(Section):
    """The responses that clients of the Responses API have stored, which is what that API does unless they say
    otherwise, so that their next request can name the one that it continues. A team finds its own alone, without teams
    a client's address. At `shared` one owner's take up to 64 MiB; a response of more than 8 MiB is not stored."""

    where: KeptWhere = Field(
        default="shared",
        description="In each process and at `server.shared` where that is written, in each `process` alone, or nowhere "
        "(off): then a request that continues a response is refused. Several processes need `server.shared`: without "
        "it each finds only the responses that it stored itself.",
    )
    lifetime: Lifetime = Field(
        default=86400.0, description="How long a response is kept after it was stored or last used, 30d at most."
    )
    memory: Size = Field(
        default=64 * 2**20,
        description="What they may take in one process, such as 64MiB. The team with the most loses its oldest first.",
    )


class SharedSection(Section):
    """What the processes behind one name share: that a vendor limits them, refuses a credential, or that its quota is
    spent; and what is left of limits and budgets, which they keep together. Few requests wait for it: each process
    takes its part of a limit ahead, and goes on with its share while Redis is away. Needs the extra `redis`, and Redis
    6.2 or newer."""

    redis: RedisUrl = Field(
        description="Where: redis://, rediss:// (TLS) or unix://, with user, password and database where needed; best "
        'as "${REDIS_URL}".'
    )
    prefix: SharedPrefix = Field(
        default="dragoman",
        description="What our key there begins with. Processes hear those with the same prefix; credentials that are "
        "fetched count as the same where the table says the same of them.",
    )


class ServerSection(Section):
    """The gateway itself."""

    host: Host = Field(
        default="127.0.0.1", description="Address to listen on. Without teams only loopback is accepted."
    )
    port: Port = Field(default=8080, description="Port to listen on; 0 takes a free one.")
    workers: Workers = Field(
        default=1,
        description="Processes that take requests; auto: as many as there are cores that may be used, by the CPU limit "
        "of a container too. More serve no more requests, and the log warns of them. Limits and budgets count "
        "all of them together; what the failures of deployments teach, and the setting concurrent, are each process's "
        "own. 1: there is one process for everything.",
    )
    hosts: list[HostPattern] = Field(
        default=[],
        description="Names under which clients call the public listener, without port; *.example.com is any name below "
        "example.com. On loopback they are added to the loopback names (localhost, 127.0.0.1, [::1]), and another Host "
        "gets 421, so that no web page can come in under a name of its own (DNS rebinding): list the names that a "
        "reverse proxy passes on. On another address the Host is judged only where names are listed; addresses and "
        "loopback names pass there too.",
    )
    cors: CorsSection = Field(default=CorsSection(), description="Which web pages may call the public listener.")
    tls: TlsSection | None = Field(
        default=None, description="The public listener's certificate. None written: plain HTTP."
    )
    admin: AdminSection = Field(default=AdminSection(), description="The admin listener.")
    max_body: Size = Field(default=32 * 2**20, description="Largest request body, such as 32MiB.")
    limits: ServerLimits = Field(default=ServerLimits(), description="The most that one process takes on at once.")
    shared: SharedSection | None = Field(
        default=None,
        description="Where several gateways count together and tell each other what vendors say. None "
        "written: each gateway counts by itself, with all its workers.",
    )
    ledger: LedgerSection = Field(
        default=LedgerSection(), description="Where it is written down what teams used; off: nowhere."
    )
    timezone: TimeZone = Field(
        default="UTC",
        description="The zone, such as Europe/Berlin, in which hours, days, weeks and months of limits and budgets "
        "begin.",
    )
    keep_thinking: KeptWhere = Field(
        default="shared",
        description="Where what models thought before they called tools, and the signatures of Gemini's texts, are "
        "kept for an hour, for clients that do not send them back though the vendor wants them: in each process and "
        "at `shared` where that is written, in each `process` alone, or nowhere (off).",
    )
    keep_responses: KeepResponsesSection = Field(
        default=KeepResponsesSection(), description="Where stored responses are kept, and for how long."
    )
    drain_grace: Duration = Field(default=1.0, description="On shutdown: from not being ready to closing the listener.")
    drain_timeout: Duration = Field(default=600.0, description="On shutdown: time running requests have to finish.")
    stall_limit: StallLimit = Field(
        default=30.0,
        description="How long the event loop of a process may stand still before the process is ended, and with "
        "workers replaced, 1s at least. 0: never, for a debugger.",
    )
    watch: Switch = Field(default=True, description="Look at the table's files every 5 s and reload when they changed.")
    log: LogSection = Field(
        default=LogSection(), description="The log lines: their form, and which good requests get one."
    )
    receipt: Switch = Field(
        default=False,
        description="Send the durations of the parts of a request in a `Server-Timing` header of each response; the "
        "log's JSON lines and spans have it too.",
    )
    payload_log: PayloadLogSection | None = Field(
        default=None, description="Where prompts and answers are written down. None written: nowhere."
    )
    tracing: TracingSection | None = Field(
        default=None, description="Where traces are sent. None written: nowhere, and nothing is traced."
    )
    surfaces: dict[SurfaceName, SurfaceSettings] = Field(default={}, description="Settings of single surfaces.")
