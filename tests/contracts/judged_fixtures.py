"""The fixtures of non-streaming responses and streams, in the form that their judges read.

Bodies of errors are left out: the SDKs have no types for them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from tests.contracts.sdk_judges import Check
from tests.contracts.vendor_judges import judged_by
from tests.providers.dialects.bedrock.kit import framed_lines
from tests.support.dialects import NAMES, fixture_name, fixture_path

FRAMED: Final = frozenset({"sagemaker"})
"""Folders whose responses are responses of other folders in another framing."""

BY_PROFILE: Final = "openai"
"""The folder that has a folder for each profile, each with its own judges."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """A fixture, its judge, and the judged part: the body, or the payload of each event of a stream."""

    path: Path
    judge: str
    check: Check
    payloads: list[bytes]

    @property
    def name(self) -> str:
        return fixture_name(self.path)


def _events(data: bytes) -> list[bytes]:
    """Return the payloads of a stream's events, without the terminator."""
    return _told(re.split(rb"\n\n+", data.replace(b"\r\n", b"\n")))


def _lines(data: bytes) -> list[bytes]:
    return _told(data.splitlines())


def _told(events: list[bytes]) -> list[bytes]:
    lines = [re.findall(rb"^data: ?(.*)$", event, re.MULTILINE) for event in events]
    return [payload for found in lines if found and (payload := b"\n".join(found)) != b"[DONE]"]


_PAYLOADS: Final[Mapping[str, Callable[[bytes], list[bytes]]]] = {
    ".json": lambda data: [data],
    ".sse": _events,
    ".ndjson": bytes.splitlines,
}


def fixtures() -> Iterator[Fixture]:
    """Yield every fixture of a non-streaming response or a stream."""
    for dialect in NAMES:
        if dialect not in {BY_PROFILE, *FRAMED}:
            for path in _in(dialect, "answers/*.json", "streams/*", "checks/*"):
                if path.suffix in _PAYLOADS:
                    yield _fixture(path, f"{dialect}.sdk_types", _PAYLOADS[path.suffix](path.read_bytes()))
    for path in _in(BY_PROFILE, "*/*", "*/checks/*"):
        if path.suffix in _PAYLOADS and not path.name.startswith("error_"):
            yield _of_profile(path, fixture_name(path).split("/")[1])
    for path in _in("bedrock", "streams/*.events", "checks/*.events"):
        yield _fixture(path, "bedrock.sdk_types", [framed_lines(path.read_bytes())])
    for path in _in("bedrock", "invoke/*.events", "titan/*.events"):
        yield _fixture(path, "bedrock.invoke_sdk_types", [framed_lines(path.read_bytes())])


def _in(dialect: str, *patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in fixture_path(dialect).glob(pattern))


def _fixture(path: Path, judge: str, payloads: list[bytes]) -> Fixture:
    return Fixture(path, judge, "answer" if path.suffix == ".json" else "events", payloads)


def _of_profile(path: Path, profile: str) -> Fixture:
    read = _lines if load_profiles()[profile].line_frames and path.suffix == ".sse" else _PAYLOADS[path.suffix]
    payloads = read(path.read_bytes())
    text = any("text" in choice for payload in payloads for choice in _choices(payload))
    return _fixture(path, judged_by(profile)[0].judge(Operation.COMPLETIONS if text else Operation.CHAT), payloads)


def _choices(payload: bytes) -> list[JsonObject]:
    try:
        answer: JsonValue = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return []
    choices = answer.get("choices") if isinstance(answer, dict) else None
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
