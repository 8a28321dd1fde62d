"""The bytes of the measured traffic: the client's requests, and the order to the fake upstream in them.

The order stands at the start of the first message, which every gateway forwards unchanged. So one upstream serves every
case, behind any gateway.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from providers.json_types import JsonObject, JsonValue

MODEL = "bench/model"
KEY = "sk-bench"

FLAVOURS = ("english", "japanese", "obfuscated")
"""Texts of responses: English, with a line end, a quote or a dash now and then; a text outside ASCII; and English in
OpenAI's chunks, each of which has filler of another length (`obfuscation`)."""

AGENT_FLAVOURS = ("thinking", "arguments")
"""The contents of Claude's streams for coding agents besides text: reasoning, and the arguments of a call."""

_EVERY_FLAVOUR = (*FLAVOURS, *AGENT_FLAVOURS)

MARK = re.compile(rb"\[bench answer=(\d+) chunks=(\d+) pace=(\d+) flavour=(\d)\]")

_ENGLISH = (
    "The river rises in the hills above the old town and runs south for sixty miles before it meets the sea. In "
    "spring, when the snow melts, it carries twice its usual volume; the people who live beside it call this “the "
    'loud month”.\n\nThree bridges cross it: the oldest, built of stone in 1642, is known as "the Narrow" — two '
    "carts cannot pass on it. The others are younger, wider and plainer, and nobody has ever given them a name.\n"
)
_JAPANESE = (
    "この川は旧市街の上の丘から流れ出し、南へおよそ百キロ下って海に注ぐ。春に雪が解けると水量は倍になる。"
    "川沿いに住む人々はこの時期を「騒がしい月」と呼ぶ。川には三つの橋がかかっている。いちばん古い石の橋は"
    "「狭い橋」と呼ばれ、二台の荷車がすれ違うことはできない。ほかの二つは新しく、広く、飾り気がない。"
)
_TOKEN = re.compile(r"[ \n]*[A-Za-z0-9]+|[ \n]*[^A-Za-z0-9\s]|\s+|.")
_TOKENS = {"english": _TOKEN.findall(_ENGLISH), "japanese": re.findall("..?", _JAPANESE)}


def tokens(flavour: str, count: int) -> list[str]:
    """Return that many parts of a text, about as long as tokens are, the same each time. Together, the parts of
    arguments are JSON."""
    if flavour == "arguments":
        said = [orjson.dumps(piece).decode()[1:-1] for piece in tokens("english", count)]
        return [
            ('{"text":"' if not place else "") + piece + ('"}' if place == count - 1 else "")
            for place, piece in enumerate(said)
        ]
    words = _TOKENS["japanese" if flavour == "japanese" else "english"]
    return [words[place % len(words)] for place in range(count)]


def prose(size: int) -> str:
    """Return English text of that many characters."""
    return (_ENGLISH * (size // len(_ENGLISH) + 1))[:size]


@dataclass(frozen=True, slots=True)
class Ask:
    """The order to the upstream: a non-streaming response of that many bytes, or a stream if `chunks` is not 0, with
    `pace` milliseconds between two chunks; and the size of the request's body in bytes."""

    answer: int = 1200
    chunks: int = 0
    pace: int = 0
    flavour: str = "english"
    prompt: int = 2048

    @property
    def mark(self) -> str:
        flavour = _EVERY_FLAVOUR.index(self.flavour)
        return f"[bench answer={self.answer} chunks={self.chunks} pace={self.pace} flavour={flavour}]"


def asked(body: bytes) -> Ask | None:
    """Return the order in a body, without the size of the prompt. Return `None` if the body has no order."""
    found = MARK.search(body)
    if found is None:
        return None
    answer, chunks, pace, flavour = map(int, found.groups())
    return Ask(answer, chunks, pace, _EVERY_FLAVOUR[flavour])


TURN = 4096
"""Characters of the longest message."""


def messages(ask: Ask, size: int) -> list[str]:
    """Return the texts of a chat's messages, about that many bytes in all. Their number is odd, since the last message
    is the user's."""
    text = ask.mark + " " + prose(max(size, 1))
    texts = [text[start : start + TURN] for start in range(0, len(text), TURN)]
    return texts if len(texts) % 2 else [*texts[:-2], texts[-2] + texts[-1]]


def roles(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the messages with their roles: the user and the assistant alternate."""
    return [(("user", "assistant")[place % 2], text) for place, text in enumerate(texts)]


def filled(ask: Ask, write: Callable[[list[str]], JsonObject]) -> bytes:
    """Return a body around a chat's messages, of about the ordered size."""
    size = ask.prompt
    body = orjson.dumps(write(messages(ask, size)))
    return orjson.dumps(write(messages(ask, size - (len(body) - size))))


def chat_body(ask: Ask, model: str = MODEL) -> bytes:
    """Return the body of a chat completion request."""

    def write(texts: list[str]) -> JsonObject:
        said: list[JsonValue] = [{"role": role, "content": text} for role, text in roles(texts)]
        options: JsonObject = {"max_tokens": 4096, "temperature": 0.5, "stream": bool(ask.chunks)}
        return {"model": model, "messages": said, **options}

    return filled(ask, write)


def request_bytes(path: str, body: bytes, key: str = KEY) -> bytes:
    """Return the complete HTTP request."""
    lines = (
        f"POST {path} HTTP/1.1",
        "host: 127.0.0.1",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def chat_request(ask: Ask, model: str = MODEL) -> bytes:
    """Return the HTTP request of a chat completion."""
    return request_bytes("/v1/chat/completions", chat_body(ask, model))
