"""Facts about the models on Bedrock's Converse, by model name, that decide how a request is written.

The service checks most of these rules only when a model is called, and each maker's models have their own rules.

Sources: pydantic-ai 2.68.0 `providers/bedrock` with its live probes, litellm 1.109.1 model map and Converse
transformation, recorded answers of @ai-sdk/amazon-bedrock 4.0.186 (Nova 2 refuses `maxTokens` beside its highest
effort), "Inference request parameters" pages for the makers' default lengths, "Supported models and model features"
page for system text and streamed tools, langchain-aws 1.9.1 for the streamed tools of Mistral, November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from providers.json_types import JsonValue

CachedPart = Literal["tools", "system", "messages"]
"""The parts of a request that can have a cache point."""

_OWN = "additionalModelRequestFields"


@dataclass(frozen=True, slots=True, eq=False)
class EffortWords:
    """How a model's reasoning effort is set: the field at `path`, and the field's value for each of the client's words.

    A word whose value means another effort is reported as emulated. `exclusive` is the value beside which the model
    accepts neither a token limit nor sampling settings.
    """

    path: str
    words: Mapping[str, JsonValue]
    exclusive: JsonValue = None

    def exact(self, word: str) -> bool:
        """Return whether the value for a word means the same effort."""
        value = self.words[word]
        effort = value.get("maxReasoningEffort", "none") if isinstance(value, dict) else value
        return effort == word


@dataclass(frozen=True, slots=True, eq=False)
class ConverseModel:
    """The rules for requests to the models of one family.

    `beside_results` are the kinds of blocks that may share a turn with a tool result. `in_results` are the media that a
    result may hold, with a format if only some formats are accepted (`document:txt`). `None` in either field means that
    everything is accepted. `result_status` is true if a result may have a status. `may_start` is true if the first turn
    may be the model's. `cached` are the parts of a request that accept cache points. `hours` is true if a cache point
    may last one hour. `video` and `citations` are true if videos and requests for citations are accepted. `redacted` is
    true if the model accepts its redacted reasoning back. `usual_output` is the token limit to send if none was given,
    for models whose own default is a few hundred tokens. `structured` says whether the service enforces schemas; if it
    is `None`, the profile decides. `reasons` is false for Claude models that never reason. `system` is true if the
    model accepts a system text. `streams_tools` is true if a call with tools may be streamed.
    """

    name: re.Pattern[str]
    beside_results: frozenset[str] | None = None
    in_results: frozenset[str] | None = None
    result_status: bool = True
    may_start: bool = False
    cached: frozenset[CachedPart] = frozenset()
    hours: bool = False
    video: bool = False
    citations: bool = False
    redacted: bool = False
    effort: EffortWords | None = None
    usual_output: int | None = None
    structured: bool | None = None
    claude: bool = False
    reasons: bool = True
    system: bool = True
    streams_tools: bool = True

    def holds(self, kind: str, form: str | None = None) -> bool:
        """Return whether a tool result may hold a medium."""
        return self.in_results is None or kind in self.in_results or f"{kind}:{form}" in self.in_results


def _words(**words: JsonValue) -> Mapping[str, JsonValue]:
    return words


def _nova(effort: str) -> JsonValue:
    return {"type": "enabled", "maxReasoningEffort": effort}


_NOVA = EffortWords(
    f"{_OWN}.reasoningConfig",
    _words(
        none={"type": "disabled"},
        minimal=_nova("low"),
        low=_nova("low"),
        medium=_nova("medium"),
        high=_nova("high"),
        xhigh=_nova("high"),
        max=_nova("high"),
    ),
    exclusive=_nova("high"),
)
_ON_OR_OFF = EffortWords(
    f"{_OWN}.reasoning_effort",
    _words(none="none", minimal="high", low="high", medium="high", high="high", xhigh="high", max="high"),
)
_GPT_OSS = EffortWords(
    f"{_OWN}.reasoning_effort",
    _words(none="low", minimal="low", low="low", medium="medium", high="high", xhigh="high", max="high"),
)
_GPT = EffortWords(
    f"{_OWN}.reasoning.effort",
    _words(none="none", minimal="low", low="low", medium="medium", high="high", xhigh="xhigh", max="max"),
)
_GROK = EffortWords(
    f"{_OWN}.reasoning.effort",
    _words(none="low", minimal="low", low="low", medium="medium", high="high", xhigh="xhigh", max="xhigh"),
)
_QWEN = EffortWords(
    f"{_OWN}.reasoning_config",
    _words(none="none", minimal="low", low="low", medium="medium", high="high", xhigh="high", max="high"),
)
_GLM_5_3 = EffortWords(
    f"{_OWN}.reasoning_effort",
    _words(none="low", minimal="low", low="low", medium="high", high="high", xhigh="max", max="max"),
)

_NOTHING_BESIDE, _NO_MEDIA = frozenset[str](), frozenset[str]()
_EVERY_PART: frozenset[CachedPart] = frozenset({"tools", "system", "messages"})

_CLAUDE = ConverseModel(
    re.compile("claude"),
    beside_results=frozenset({"text", "image"}),
    in_results=frozenset({"image", "document"}),
    may_start=True,
    cached=_EVERY_PART,
    hours=True,
    citations=True,
    redacted=True,
    claude=True,
)

_FAMILIES: tuple[ConverseModel, ...] = (
    replace(_CLAUDE, name=re.compile(r"claude-(3-(opus|sonnet|haiku|5)|instant|v?2)"), reasons=False),
    _CLAUDE,
    ConverseModel(
        re.compile(r"nova-2|nova-(lite|pro|micro|premier|omni)-2"),
        in_results=frozenset({"image", "document:csv", "document:txt"}),
        cached=frozenset({"system", "messages"}),
        video=True,
        effort=_NOVA,
    ),
    ConverseModel(
        re.compile(r"amazon\.nova|nova-(lite|pro|micro|premier)"),
        in_results=frozenset({"image", "document:csv", "document:txt"}),
        cached=frozenset({"system", "messages"}),
        video=True,
    ),
    ConverseModel(
        re.compile(r"llama-?4"),
        beside_results=_NOTHING_BESIDE,
        in_results=frozenset({"image", "document"}),
        usual_output=8192,
        streams_tools=False,
    ),
    ConverseModel(
        re.compile("llama"),
        beside_results=_NOTHING_BESIDE,
        in_results=frozenset({"image", "document"}),
        usual_output=2048,
        streams_tools=False,
    ),
    ConverseModel(
        re.compile(r"mistral-7b|mixtral"),
        beside_results=_NOTHING_BESIDE,
        in_results=frozenset({"document"}),
        usual_output=4096,
        structured=False,
        system=False,
        streams_tools=False,
    ),
    ConverseModel(
        re.compile(r"magistral-small|ministral-3|mistral-large-3|voxtral"),
        beside_results=_NOTHING_BESIDE,
        in_results=frozenset({"document"}),
        structured=True,
    ),
    ConverseModel(
        re.compile(r"mistral|pixtral|devstral"),
        beside_results=_NOTHING_BESIDE,
        in_results=frozenset({"document"}),
        structured=False,
        streams_tools=False,
    ),
    ConverseModel(
        re.compile(r"writer\.|palmyra"),
        beside_results=_NOTHING_BESIDE,
        result_status=False,
        structured=False,
        streams_tools=False,
    ),
    ConverseModel(re.compile("qwen3"), in_results=_NO_MEDIA, may_start=True, effort=_QWEN, structured=True),
    ConverseModel(re.compile("qwen"), in_results=_NO_MEDIA, may_start=True, structured=False),
    ConverseModel(re.compile(r"kimi"), in_results=_NO_MEDIA, may_start=True, structured=True),
    ConverseModel(re.compile(r"glm-5[.-]3"), may_start=True, effort=_GLM_5_3, structured=True),
    ConverseModel(re.compile("glm"), may_start=True, effort=_ON_OR_OFF, structured=True),
    ConverseModel(re.compile(r"deepseek\.v3|deepseek-v3"), effort=_ON_OR_OFF),
    ConverseModel(re.compile("gpt-oss"), effort=_GPT_OSS),
    ConverseModel(re.compile(r"openai\.gpt-[5-9]"), redacted=True, effort=_GPT),
    ConverseModel(re.compile("grok"), effort=_GROK, structured=False),
    ConverseModel(re.compile("titan"), usual_output=3072, system=False),
    ConverseModel(re.compile(r"command-(text|light)"), system=False),
)

UNKNOWN_MODEL = ConverseModel(re.compile(""))
"""The rules for a model of an unknown family. Its requests are not adapted: the service itself refuses unsupported
parts."""


@lru_cache(maxsize=4096)
def converse_model(*names: str) -> ConverseModel:
    """Return the facts about a model by any of its names: the service's name or the configured name."""
    for family in _FAMILIES:
        if any(family.name.search(name.lower()) for name in names):
            return family
    return UNKNOWN_MODEL
