"""The interface of plugins, version 1: the only module that a plugin imports.

A plugin is a class that the table names under `plugins`. It has `api_version = 1`, is made with the table's `options`,
and has one or more of these methods:

- `check_request(request)`: a request guard. It sees every text of a request before a deployment is chosen.
- `check_answer(answer)`: an answer guard. It sees every text of a choice of the answer, whole.
- `open_stream(about, choice)`: beside `check_answer`, for streams: returns an object that gets the text in pieces.
  Without it a stream is held back until the answer has ended.
- `deliver(rows, http)`, a coroutine: a usage sink. It gets facts about finished requests, never their content.

A guard's methods are plain functions, no coroutines. `slow = True` says that they may take more than about a
millisecond: they are called in threads then, and must be safe for that. The methods of a guard that blocks the event
loop again and again are called in threads as well, and so are the methods of any guard for large requests and answers.
`close()`, if there is one, is called when the table no longer has the plugin and no request uses it, in a thread of its
own; it has two seconds. What a plugin prints goes to stderr: standard output is the access log's, and a command's.

The constructor checks the options and raises OptionError. It is also called by `dragoman check`, and before worker
processes are forked: it must open no connection and start no thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

API_VERSION: Final = 1
"""A plugin of another version is refused when the table is loaded. Members may be added within a version."""

TextKind = Literal[
    "content", "reasoning", "refusal", "tool_arguments", "tool_result", "tool_definition", "name", "other"
]
"""What a text is. A `name` is a key of an object, or the name of a tool: rewritten, it names something else in what is
sent. New kinds may be added within a version."""

RefusalCode = Literal["refused_by_plugin", "content_filter"]
"""The error's `code` for the client; `content_filter` is the one that SDKs know."""


@dataclass(frozen=True, slots=True)
class AboutRequest:
    """Who asks for what. `model` is the name that the client asks for, `user` the one that it says it asks for, `tags`
    are the team's in the table."""

    request_id: str
    team: str
    model: str
    surface: str
    user: str | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GuardedText:
    """One text: what it is, whose (`system`, `user`, `assistant`, `tool`, or empty where nobody says it), and where it
    stands, such as `messages[0].content[1].text`, for messages and tests. The form of `place` may change."""

    text: str
    kind: TextKind
    role: str
    place: str


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """A request as its guards see it. Not among the texts are media, ids, numbers, and keys and words of the APIs."""

    about: AboutRequest
    texts: tuple[GuardedText, ...]


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """One choice of an answer as its guards see it. A stream shows its content other than text in parts; reasoning that
    goes on after other content is shown again from its beginning."""

    about: AboutRequest
    choice: int
    texts: tuple[GuardedText, ...]


@dataclass(frozen=True, slots=True)
class Allow:
    """Let it pass."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error. The client reads `reason`, of which 300 characters are shown: it should say no secret."""

    reason: str
    code: RefusalCode = "refused_by_plugin"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Let it pass with these texts in place of those that were shown, as many and in the same order."""

    texts: tuple[str, ...]


Verdict: TypeAlias = Allow | Refuse | Rewrite

ALLOW: Final = Allow()


class RefusedStream(Exception):
    """Raised by an AnswerTextStream to refuse what it was fed; otherwise as Refuse. A guard's own methods return
    Refuse: one that raises this instead refuses all the same, whatever `fail` says."""

    def __init__(self, reason: str, code: RefusalCode = "refused_by_plugin") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code: RefusalCode = code


class OptionError(ValueError):
    """Raised by a constructor that refuses its options. `path` are the keys and list indices that lead to the value,
    empty for all of them; the message must not repeat values, which may be secrets."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


class RequestGuard(Protocol):
    """Checks requests."""

    api_version: int

    def check_request(self, request: RequestTexts) -> Verdict:
        """Return what becomes of a request."""


class AnswerGuard(Protocol):
    """Checks answers."""

    api_version: int

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        """Return what becomes of an answer that has this choice."""


class AnswerTextStream(Protocol):
    """Checks the text of one choice of a stream. Both methods may raise RefusedStream."""

    def feed(self, text: str) -> str:
        """Return what the client may see now. What may belong to something that is not complete is held back: no more
        than 65,536 characters."""

    def end(self) -> str:
        """Return the rest: the text has ended."""


class StreamingAnswerGuard(AnswerGuard, Protocol):
    """Checks streams as they come. `check_answer` gets what a stream holds besides its text: reasoning, arguments of
    tool calls, refusals."""

    def open_stream(self, about: AboutRequest, choice: int) -> AnswerTextStream:
        """Return what checks the text of a choice."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A finished request. `id` tells it apart in repeated deliveries; `time` is its end in ms UTC. Token counts and
    `cost_usd` are None where nobody knows them; `estimated` says that the gateway counted. `deployment` and `model` are
    names of the table, `asked` is the client's own string."""

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
    """Sends requests as the gateway does: to addresses that the table's vendors may have, with certificates checked and
    redirects not followed."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Return the status of the answer to a post by https. Raises OSError."""

    async def post_inside(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Do so to an address that may also be private; cloud metadata stays refused."""


class UsageSink(Protocol):
    """Takes what was used."""

    api_version: int

    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        """Deliver up to 100 rows. Any exception, and a passed deadline, is followed by up to four more tries with the
        same rows. Must not block."""
