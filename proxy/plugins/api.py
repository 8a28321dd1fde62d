"""The interface of plugins, version 1. A plugin imports no other module of the gateway.

A plugin is a class that the configuration names under `plugins`. It has `api_version = 1`. The gateway creates an
instance with the `options` of the configuration. The class has one or more of these methods:

- `check_request(request)`: a request guard. It sees every text of a request before a deployment is chosen.
- `check_answer(answer)`: a response guard. It sees every text of a choice of the complete response.
- `open_stream(about, choice)`: for streams, in addition to `check_answer`. It returns an object that gets the text in
  chunks. Without it, a stream is held back until the response has ended.
- `deliver(rows, http)`, a coroutine: a usage sink. It gets facts about finished requests, never their content.

A guard's methods are plain functions, not coroutines. `slow = True` declares that they may take more than about a
millisecond. They are then called in threads and must be thread-safe. The methods of a guard that repeatedly blocks the
event loop are called in threads as well. So are the methods of every guard for large requests and responses.

`close()` is optional. It is called when the plugin is no longer in the configuration and no request uses it. It runs
in its own thread and has two seconds. A plugin's printed output goes to stderr, because standard output is for the
access log or a command's output.

The constructor checks the options and raises OptionError. It is also called by `dragoman check`, and before worker
processes are forked. So it must not open a connection or start a thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

API_VERSION: Final = 1
"""A plugin with another version is refused when the configuration is loaded. Fields and methods may be added within a
version."""

TextKind = Literal[
    "content", "reasoning", "refusal", "tool_arguments", "tool_result", "tool_definition", "name", "other"
]
"""The kind of a text. A `name` is a key of an object or the name of a tool; rewriting it renames the key or tool in
the data that is sent. New kinds may be added within a version."""

RefusalCode = Literal["refused_by_plugin", "content_filter"]
"""The error's `code` for the client. SDKs know `content_filter`."""


@dataclass(frozen=True, slots=True)
class AboutRequest:
    """The origin of a request. `model` is the name in the client's request. `user` is the end user that the client
    names. `tags` are the team's tags in the configuration."""

    request_id: str
    team: str
    model: str
    surface: str
    user: str | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GuardedText:
    """One text with its kind, role and place. `role` is `system`, `user`, `assistant`, `tool`, or empty if the text
    has no role. `place` is its location, such as `messages[0].content[1].text`, for messages and tests. The format of
    `place` may change."""

    text: str
    kind: TextKind
    role: str
    place: str


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """The texts of a request that its guards see. Media, ids, numbers, and the keys and words of the APIs are
    excluded."""

    about: AboutRequest
    texts: tuple[GuardedText, ...]


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """The texts of one choice of a response that its guards see. In a stream, content other than text is checked in
    parts. Reasoning that continues after other content is shown again from its beginning."""

    about: AboutRequest
    choice: int
    texts: tuple[GuardedText, ...]


@dataclass(frozen=True, slots=True)
class Allow:
    """Let the request or response pass unchanged."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Return an error to the client. The client reads the first 300 characters of `reason`, so it should contain no
    secret."""

    reason: str
    code: RefusalCode = "refused_by_plugin"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Let the request or response pass with these texts instead of the texts that the guard saw. Their number and
    order must be the same."""

    texts: tuple[str, ...]


Verdict: TypeAlias = Allow | Refuse | Rewrite

ALLOW: Final = Allow()


class RefusedStream(Exception):
    """An AnswerTextStream raises it to refuse its input, as Refuse does for complete texts. A guard's other methods
    return Refuse. If they raise this exception, they also refuse, whatever `fail` is."""

    def __init__(self, reason: str, code: RefusalCode = "refused_by_plugin") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code: RefusalCode = code


class OptionError(ValueError):
    """A constructor raises it to refuse its options. `path` has the keys and list indices that lead to the value; it
    is empty for all options. The message must not repeat values, because they may be secrets."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


class RequestGuard(Protocol):
    """A guard that checks requests."""

    api_version: int

    def check_request(self, request: RequestTexts) -> Verdict:
        """Return whether a request is allowed, refused or rewritten."""


class AnswerGuard(Protocol):
    """A guard that checks responses."""

    api_version: int

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        """Return whether a response with this choice is allowed, refused or rewritten."""


class AnswerTextStream(Protocol):
    """Checks the text of one choice of a stream. Both methods may raise RefusedStream."""

    def feed(self, text: str) -> str:
        """Return the text that the client may see now. Text that may belong to an incomplete match is held back, at
        most 65,536 characters."""

    def end(self) -> str:
        """Return the remaining text, because the stream's text has ended."""


class StreamingAnswerGuard(AnswerGuard, Protocol):
    """A guard that checks streams while they arrive. `check_answer` gets the content of a stream that is not text:
    reasoning, arguments of tool calls, refusals."""

    def open_stream(self, about: AboutRequest, choice: int) -> AnswerTextStream:
        """Return the object that checks the text of a choice."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The facts about a finished request. `id` identifies the row in repeated deliveries. `time` is the end of the
    request in ms UTC. Token counts and `cost_usd` are `None` if they are unknown. `estimated` is set if the gateway
    counted the tokens itself. `deployment` and `model` are names in the configuration; `asked` is the name that the
    client sent."""

    id: str
    time: int
    request_id: str
    team: str
    key: str
    user: str | None
    tags: Mapping[str, str]
    surface: str
    asked: str
    model: str
    deployment: str | None
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    estimated: bool
    cost_usd: float | None
    status: int
    outcome: str
    ms: int
    attempts: int


class Poster(Protocol):
    """Sends HTTP requests under the gateway's own rules. Only addresses that vendors in the configuration may have are
    allowed. Certificates are checked, and redirects are not followed."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Return the status of the response to an HTTPS POST. Raises OSError."""

    async def post_inside(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Like `post`, but private addresses are also allowed. Cloud metadata addresses stay refused."""


class UsageSink(Protocol):
    """A receiver of the usage of finished requests."""

    api_version: int

    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        """Deliver up to 100 rows. After any exception or a passed deadline, the same rows are tried up to four more
        times. Must not block."""
