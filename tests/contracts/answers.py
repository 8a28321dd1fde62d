"""The fixtures of whole answers and of streams, as their judges read them.

Never an error's body, which the SDKs have no types for, and never a judgement.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from providers.profiles import load_profiles
from providers.unified import JsonObject, JsonValue, Operation
from tests.contracts.judges import Check
from tests.contracts.vendors import held
from tests.providers.dialects import bedrock_kit

ROOT: Final = Path(__file__).resolve().parents[1] / "fixtures"

JUDGES: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "gemini": "gemini",
    "llamacpp": "llamacpp",
    "llm_engine": "llm_engine",
    "ollama": "ollama",
    "replicate": "replicate",
    "sglang": "sglang",
    "tgi": "tgi",
    "triton": "triton",
    "watsonx": "watsonx",
}
"""By folder; in `openai` there is a folder for each row."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """A file, who reads it, and what of it: the body, or what each event of a stream carries."""

    path: Path
    judge: str
    check: Check
    payloads: list[bytes]

    @property
    def name(self) -> str:
        """Its path in the folder of fixtures."""
        return self.path.relative_to(ROOT).as_posix()


def _events(data: bytes) -> list[bytes]:
    """What the events of a stream carry, but for the terminator."""
    return _told(re.split(rb"\n\n+", data.replace(b"\r\n", b"\n")))


def _lines(data: bytes) -> list[bytes]:
    """The same where an event ends with its line."""
    return _told(data.splitlines())


def _told(events: list[bytes]) -> list[bytes]:
    lines = [re.findall(rb"^data: ?(.*)$", event, re.MULTILINE) for event in events]
    return [payload for found in lines if found and (payload := b"\n".join(found)) != b"[DONE]"]


_PAYLOADS: Final[Mapping[str, Callable[[bytes], list[bytes]]]] = {
    ".json": lambda data: [data],
    ".sse": _events,
    ".ndjson": bytes.splitlines,
}


def frames(data: bytes) -> bytes:
    """A transcript in the frames of Bedrock's streams: a line of JSON is a piece of a model's own stream."""
    lines = data.decode().splitlines()
    return b"".join(
        bedrock_kit.chunk(line.encode()) if line.startswith("{") else bedrock_kit.frame(line) for line in lines
    )


def fixtures() -> Iterator[Fixture]:
    """All of them."""
    for folder, judge in JUDGES.items():
        for path in _in(ROOT / folder, "answers/*.json", "streams/*", "checks/*"):
            if path.suffix in _PAYLOADS:
                yield _fixture(path, judge, _PAYLOADS[path.suffix](path.read_bytes()))
    for path in _in(ROOT / "openai", "*/*", "*/checks/*"):
        if path.suffix in _PAYLOADS and not path.name.startswith("error_"):
            yield _of_row(path, path.relative_to(ROOT / "openai").parts[0])
    for path in _in(ROOT / "bedrock", "streams/*.events", "checks/*.events"):
        yield _fixture(path, "bedrock", [frames(path.read_bytes())])
    for path in _in(ROOT / "bedrock", "invoke/*.events", "titan/*.events"):
        yield _fixture(path, "bedrock_invoke", [frames(path.read_bytes())])


def _in(folder: Path, *patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in folder.glob(pattern))


def _fixture(path: Path, judge: str, payloads: list[bytes]) -> Fixture:
    return Fixture(path, judge, "answer" if path.suffix == ".json" else "events", payloads)


def _of_row(path: Path, row: str) -> Fixture:
    read = _lines if load_profiles()[row].line_frames and path.suffix == ".sse" else _PAYLOADS[path.suffix]
    payloads = read(path.read_bytes())
    text = any("text" in choice for payload in payloads for choice in _choices(payload))
    return _fixture(path, held(row)[0].judge(Operation.COMPLETIONS if text else Operation.CHAT), payloads)


def _choices(payload: bytes) -> list[JsonObject]:
    try:
        answer: JsonValue = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return []
    choices = answer.get("choices") if isinstance(answer, dict) else None
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
