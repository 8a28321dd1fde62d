"""A process that runs one SDK: it reads a JSON line, calls the SDK, and writes a JSON line with the result or the
exception.

    PYTHONPATH=DIRECTORY python -S -m tests.e2e.clients.driver SDK

It imports only the standard library and the SDK: the SDKs' dependencies conflict with each other and with the
gateway's. `tests/support/clients.py` starts it and describes both lines.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

Foreign: TypeAlias = Any  # an object of an SDK, which is not installed where this file is type-checked
Wire: TypeAlias = Any  # JSON of any shape

T = TypeVar("T")

TIMEOUT = 30.0
ACCOUNT = "account"
"""scale-gp-beta refuses to start without an account; scale-gp sends it if it is set."""


@dataclass(frozen=True, slots=True)
class Options:
    """The connection. `url` includes the prefix."""

    url: str
    api_key: str
    max_retries: int


@dataclass(frozen=True, slots=True)
class Sdk:
    """The resources of a connected SDK. `models` is `None` if it cannot list models of the gateway, `embeddings` and
    `responses` if it does not have them."""

    completions: Foreign
    chat: Foreign
    models: Foreign = None
    embeddings: Foreign = None
    responses: Foreign = None


def openai(options: Options) -> Sdk:
    """Return openai 2.x and 3.x, with its class for Azure if the address ends like an Azure address."""
    from openai import AzureOpenAI, OpenAI  # type: ignore[import-not-found]

    own = {"api_key": options.api_key, "max_retries": options.max_retries, "timeout": TIMEOUT}
    if options.url.endswith("/openai"):
        client = AzureOpenAI(azure_endpoint=options.url.removesuffix("/openai"), api_version="2024-10-21", **own)
    else:
        client = OpenAI(base_url=options.url, **own)
    return Sdk(client.completions, client.chat.completions, client.models, client.embeddings, client.responses)


def scale_gp(options: Options) -> Sdk:
    """Return scale-gp: the two beta resources, which use /v4/beta."""
    from scale_gp import SGPClient  # type: ignore[import-not-found]

    client = SGPClient(
        base_url=options.url,
        api_key=options.api_key,
        account_id=ACCOUNT,
        max_retries=options.max_retries,
        timeout=TIMEOUT,
    )
    return Sdk(client.beta.completions, client.beta.chat.completions)


def scale_gp_beta(options: Options) -> Sdk:
    """Return scale-gp-beta, which uses /v5."""
    from scale_gp_beta import SGPClient  # type: ignore[import-not-found]

    client = SGPClient(
        base_url=options.url,
        api_key=options.api_key,
        account_id=ACCOUNT,
        max_retries=options.max_retries,
        timeout=TIMEOUT,
    )
    return Sdk(client.completions, client.chat.completions, client.models)


def fireworks0(options: Options) -> Sdk:
    """Return fireworks-ai 0.x, which has no retries of its own."""
    from fireworks.client import Fireworks  # type: ignore[import-not-found]

    client = Fireworks(base_url=options.url, api_key=options.api_key, timeout=TIMEOUT)
    return Sdk(client.completions, client.chat.completions)


def fireworks1(options: Options) -> Sdk:
    """Return fireworks-ai 1.x."""
    from fireworks import Fireworks  # type: ignore[import-not-found]

    client = Fireworks(base_url=options.url, api_key=options.api_key, max_retries=options.max_retries, timeout=TIMEOUT)
    return Sdk(client.completions, client.chat.completions)


SDKS: Mapping[str, Callable[[Options], Sdk]] = {
    function.__name__: function for function in (openai, scale_gp, scale_gp_beta, fireworks0, fireworks1)
}


class Heard:
    """The SDK's results, filled while it runs, so that a later failure does not lose earlier results."""

    def __init__(self) -> None:
        self.result: object = None
        self.chunks: list[object] = []
        self.request_id: str | None = None

    def whole(self, answer: Foreign) -> None:
        """Record a non-streaming response."""
        self.request_id = getattr(answer, "_request_id", None)
        self.result = plain(answer)

    def stream(self, stream: Foreign, leave_after: int | None) -> None:
        """Record a streamed response, to its end or until `leave_after` chunks."""
        for chunk in stream:
            self.chunks.append(plain(chunk))
            if len(self.chunks) == leave_after:
                stream.close()
                return

    def line(self, error: Exception | None) -> dict[str, object]:
        answers = [answer for answer in (self.chunks or [self.result]) if isinstance(answer, dict)]
        choices = [choice for answer in answers for choice in answer.get("choices") or []]
        firsts = [choice for choice in choices if choice.get("index", 0) == 0]
        return {
            "result": self.result,
            "chunks": self.chunks,
            "text": "".join(text_of(choice) for choice in firsts),
            "finish_reason": last(choice.get("finish_reason") for choice in firsts),
            "usage": last(answer.get("usage") for answer in answers),
            "request_id": self.request_id,
            "error": None if error is None else described(error),
        }


def plain(value: object) -> object:
    return value.model_dump(mode="json", exclude_unset=True) if hasattr(value, "model_dump") else value


def text_of(choice: Mapping[str, Wire]) -> str:
    """Return the text of a choice in any of the three shapes."""
    holder = choice.get("delta") or choice.get("message") or {}
    return choice.get("text") or holder.get("content") or ""


def last(values: Iterable[T | None]) -> T | None:
    """Return the last value that is not `None`."""
    return next((value for value in reversed(list(values)) if value is not None), None)


def described(error: Exception) -> dict[str, object]:
    """Return an exception as a caller would inspect it. Missing attributes are `None`."""
    carried = {name: getattr(error, name, None) for name in ("status_code", "code", "param", "type", "body")}
    cause = None if error.__cause__ is None else repr(error.__cause__)
    return {"kind": type(error).__name__, "message": str(error), "cause": cause, **carried}


def run(connect: Callable[[Options], Sdk], order: Mapping[str, Wire]) -> dict[str, object]:
    """Carry out one order. An exception of the SDK is its result. An error in the order itself ends the process."""
    heard = Heard()
    sdk = connect(Options(order["url"], order["api_key"], order["max_retries"]))
    fields, leave_after = order["fields"], order["leave_after"]
    calls: dict[str, Callable[[], None]] = {
        "completion": lambda: heard.whole(sdk.completions.create(**fields)),
        "completion_stream": lambda: heard.stream(sdk.completions.create(stream=True, **fields), leave_after),
        "chat": lambda: heard.whole(sdk.chat.create(**fields)),
        "chat_stream": lambda: heard.stream(sdk.chat.create(stream=True, **fields), leave_after),
    }
    if sdk.models is not None:
        calls["models"] = lambda: heard.whole(sdk.models.list())
        calls["model"] = lambda: heard.whole(sdk.models.retrieve(fields["model"]))
    if sdk.embeddings is not None:
        calls["embeddings"] = lambda: heard.whole(sdk.embeddings.create(**fields))
    if sdk.responses is not None:
        calls["response"] = lambda: heard.whole(sdk.responses.create(**fields))
        calls["response_stream"] = lambda: heard.stream(sdk.responses.create(stream=True, **fields), leave_after)
        calls["response_retrieve"] = lambda: heard.whole(sdk.responses.retrieve(**fields))
        calls["response_delete"] = lambda: heard.whole(sdk.responses.delete(**fields))
        calls["response_items"] = lambda: heard.stream(sdk.responses.input_items.list(**fields), leave_after)
    call = calls[order["scenario"]]
    try:
        call()
    except Exception as error:
        return heard.line(error)
    return heard.line(None)


def main() -> None:
    connect = SDKS[sys.argv[1]]
    for line in sys.stdin:
        print(json.dumps(run(connect, json.loads(line)), default=str), flush=True)


if __name__ == "__main__":
    main()
