"""Plugins for tests, well-behaved and hostile, and helpers that put them into a configuration."""

import asyncio
import atexit
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proxy.plugins.api import (
    ALLOW,
    AboutRequest,
    AnswerTexts,
    OptionError,
    Poster,
    Refuse,
    RefusedStream,
    RequestTexts,
    Rewrite,
    UsageRow,
    Verdict,
)

SECRET, HIDDEN = "swordfish", "[hidden]"
RELEASE = threading.Event()
"""Set to let hanging plugins end."""


class Hider:
    """A guard that hides a word in requests and responses; needs non-streaming responses."""

    api_version = 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.word = options.get("word", SECRET)
        self.where = options.get("where", "both")
        self.closed = 0

    def check_request(self, request: RequestTexts) -> Verdict:
        if self.where == "answer":
            return ALLOW
        return Rewrite(tuple([each.text.replace(self.word, HIDDEN) for each in request.texts]))

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        if self.where == "request":
            return ALLOW
        return Rewrite(tuple([each.text.replace(self.word, HIDDEN) for each in answer.texts]))

    def close(self) -> None:
        self.closed += 1


class Sleeper:
    """A slow guard that runs in threads and allows everything."""

    api_version = 1
    slow = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        pass

    def check_request(self, request: RequestTexts) -> Verdict:
        time.sleep(0.05)
        return ALLOW

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        time.sleep(0.05)
        return ALLOW


class LiveHider(Hider):
    """A guard that hides the word in streams as they arrive."""

    def open_stream(self, about: AboutRequest, choice: int) -> "HidingStream":
        return HidingStream(self.word, refuses=False)


class HidingStream:
    def __init__(self, word: str, *, refuses: bool) -> None:
        self.word, self.refuses, self.back = word, refuses, ""

    def feed(self, text: str) -> str:
        text = self.back + text
        if self.refuses and self.word in text:
            raise RefusedStream("it says the word")
        text = text.replace(self.word, HIDDEN)
        keep = next((n for n in range(len(self.word) - 1, 0, -1) if text.endswith(self.word[:n])), 0)
        self.back = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep]

    def end(self) -> str:
        return self.back


class Refuser:
    """A guard that refuses a word; needs non-streaming responses."""

    api_version = 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.word = options.get("word", SECRET)

    def check_request(self, request: RequestTexts) -> Verdict:
        return ALLOW

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        found = any(self.word in each.text for each in answer.texts)
        return Refuse("it says\nthe word", "content_filter") if found else ALLOW


class LiveRefuser(Refuser):
    def open_stream(self, about: AboutRequest, choice: int) -> HidingStream:
        return HidingStream(self.word, refuses=True)


class RequestRefuser:
    api_version = 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        if "bad" in options:
            raise OptionError(f"must not be {options['bad']}", "bad")

    def check_request(self, request: RequestTexts) -> Verdict:
        return Refuse("no swordfish") if any(SECRET in each.text for each in request.texts) else ALLOW


class RaisingRefuser:
    """A guard that refuses a word by the exception of streams, in the methods that `where` names."""

    api_version = 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.where = options["where"]
        if self.where == "stream":
            self.open_stream = self._refuse

    def _refuse(self, about: AboutRequest, choice: int) -> HidingStream:
        raise RefusedStream("it says the word", "content_filter")

    def check_request(self, request: RequestTexts) -> Verdict:
        if self.where == "request":
            raise RefusedStream("it says the word", "content_filter")
        return ALLOW

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        if self.where == "answer":
            raise RefusedStream("it says the word", "content_filter")
        return ALLOW


RAISED: Mapping[str, type[BaseException]] = {
    "raise": ValueError,
    "exit": SystemExit,
    "cancel": asyncio.CancelledError,
    "leave": GeneratorExit,
    "interrupt": KeyboardInterrupt,
}


class Hostile:
    """A guard that misbehaves in requests as its options say: it raises, hangs, blocks, or returns garbage or too
    much."""

    api_version = 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.does = options["does"]
        self.slow = options.get("slow", False)

    def check_request(self, request: RequestTexts) -> Any:  # noqa: ANN401 - garbage too
        texts = tuple([each.text for each in request.texts])
        if self.does in RAISED:
            raise RAISED[self.does](texts[0])
        match self.does:
            case "hang":
                RELEASE.wait()
            case "block":
                time.sleep(0.02)
            case "nothing":
                return None
            case "fewer":
                return Rewrite(())
            case "numbers":
                return Rewrite((1,) * len(texts))  # type: ignore[arg-type]
            case "huge":
                return Rewrite(("x" * 3_000_000, *texts[1:]))
            case "surrogate":
                return Rewrite(("\ud800", *texts[1:]))
            case _:
                raise AssertionError(self.does)
        return ALLOW


class HostileStream(LiveHider):
    """A guard that fails in the middle of a stream."""

    def open_stream(self, about: AboutRequest, choice: int) -> Any:  # noqa: ANN401 - garbage too
        return FailingStream() if self.word == "raise" else GarbageStream() if self.word == "garbage" else None

    def check_answer(self, answer: AnswerTexts) -> Verdict:
        return ALLOW


class FailingStream:
    def feed(self, text: str) -> str:
        if "two" in text:
            raise RuntimeError("no")
        return text

    def end(self) -> str:
        return ""


class GarbageStream:
    def feed(self, text: str) -> Any:  # noqa: ANN401 - garbage
        return b"bytes"

    def end(self) -> str:
        return ""


class Collector:
    """A sink that stores rows; fails as often as its options say."""

    api_version = 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.failures = options.get("failures", 0)
        self.rows: list[UsageRow] = []
        self.tries = 0
        self.closed = 0

    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise OSError("not now")
        self.rows.extend(rows)

    def close(self) -> None:
        self.closed += 1


class Lingerer(Collector):
    """A guard and a sink whose `close()` blocks for a minute, or until it is released."""

    def check_request(self, request: RequestTexts) -> Verdict:
        return ALLOW

    def close(self) -> None:
        RELEASE.wait(60)
        super().close()


class Printer(Collector):
    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        print("made")


class Chatterbox(Collector):
    """A plugin that prints whenever any of its methods is called, and when the interpreter ends."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        atexit.register(print, "ended")
        print("made")

    @property
    def slow(self) -> bool:
        print("asked")
        return False

    @property
    def check_request(self) -> Callable[[RequestTexts], Verdict]:
        print("looked up")
        return self._check

    def _check(self, request: RequestTexts) -> Verdict:
        print("called")
        sys.stdout.write("written\n")
        return ALLOW

    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        print("delivered")

    def close(self) -> None:
        print("closed")


class OldPlugin:
    api_version = 0


class AsyncGuard:
    api_version = 1

    async def check_request(self, request: RequestTexts) -> Verdict:
        return ALLOW


class AsyncStreams(Refuser):
    async def open_stream(self, about: AboutRequest, choice: int) -> HidingStream:
        return HidingStream(self.word, refuses=True)


class WithoutRequest:
    api_version = 1

    def __init__(self, options: object) -> None:
        """Take the options."""

    def check_request(self) -> Verdict:
        return ALLOW


class WithoutOptions:
    api_version = 1

    def check_request(self, request: RequestTexts) -> Verdict:
        return ALLOW


class NoPlugin:
    api_version = 1


KIT = "tests.proxy.plugins.kit"


def plugin(name: str, options: str = "", more: str = "") -> str:
    """Return an entry of the configuration's `plugins`."""
    return f'{{use: "{KIT}:{name}", options: {{{options}}}{more}}}'


class Hoarder(LiveHider):
    """A guard that holds every stream back."""

    def open_stream(self, about: AboutRequest, choice: int) -> Any:  # noqa: ANN401
        return HoardingStream()


class HoardingStream:
    def feed(self, text: str) -> str:
        return ""

    def end(self) -> str:
        return ""
