"""The checks of sent bodies, the fixture sets and the benchmark streams of the OpenAI dialect.

A profile whose vendor publishes no types is checked against OpenAI's types and a hand-written list of the fields that
its documentation adds. The sources are the pages that its entry in `providers/profiles/profiles.yaml` names, read in
November 2026. The list is not derived from the entry, so that it shows if an entry claims too much.
"""

from collections.abc import Mapping
from typing import Final

from providers.json_types import JsonObject, JsonValue
from tests.bench.streams import LONG_CHAT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy, Members, only
from tests.providers.dialects.kit import chat_request, target_of
from tests.providers.dialects.responses.kit import own_request

NUMBER: Final[JsonObject] = {"type": "number"}
WHOLE: Final[JsonObject] = {"type": "integer"}
FLAG: Final[JsonObject] = {"type": "boolean"}
TEXT: Final[JsonObject] = {"type": "string", "minLength": 1}
TEXTS: Final[JsonObject] = {"type": "array", "items": TEXT, "minItems": 1}
OBJECT: Final[JsonObject] = {"type": "object"}


def const(value: JsonValue) -> JsonObject:
    """Return the schema of one value."""
    return {"const": value}


def exactly(**members: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly these fields."""
    return {"type": "object", "properties": {**members}, "required": [*members], "additionalProperties": False}


def one_of(**members: JsonObject) -> JsonObject:
    """Return the schema of an object with one of these fields."""
    return {"anyOf": [exactly(**{name: schema}) for name, schema in members.items()]}


_WRAPPED = exactly(name=TEXT, schema=OBJECT, strict=FLAG)
_FORMATS: Final[JsonObject] = {
    "anyOf": [exactly(type=const("json_object")), exactly(type=const("json_schema"), json_schema=_WRAPPED)]
}
"""OpenAI's response formats, for vendors that accept them for raw prompts too."""

_TAGGED = exactly(type=const("structural_tag"), format=OBJECT)
_SAMPLING: Members = {"top_k": WHOLE, "min_p": NUMBER, "repetition_penalty": NUMBER}
_LLAMA_SAMPLING: Members = {"top_k": WHOLE, "min_p": NUMBER, "repeat_penalty": NUMBER}


def openai(beyond: Members, chat: Members | None = None, completions: Members | None = None) -> JudgedBy:
    """Return OpenAI's types as judges, with extra fields for both operations or for one."""
    return JudgedBy("openai:chat", "openai:completions", beyond, chat or {}, completions or {})


OPENAI = openai({})
_GUIDED = one_of(regex=TEXT, choice=TEXTS, grammar=TEXT, json=OBJECT)

VLLM = openai(
    {
        **_SAMPLING,
        "ignore_eos": FLAG,
        "include_stop_str_in_output": FLAG,
        # Sent under the new name and the old ones at once, because each version of vLLM reads its own.
        "structured_outputs": _GUIDED,
        "guided_regex": TEXT,
        "guided_choice": TEXTS,
        "guided_grammar": TEXT,
    },
    chat={"response_format": _TAGGED},
    completions={"response_format": {"anyOf": [_FORMATS, _TAGGED]}},
)

OPENAI_STREAMS = {
    **by_name("openai/openai/checks", "sse", f"text tool length filtered uncounted {BROKEN}", unknown="noise"),
    "tools": "openai/openai/tools.sse",
}
OPENAI_WHOLE = by_name("openai/openai/checks", "json", "text tool tools length filtered unknown uncounted")
OPENAI_FORM = Form("openai/openai_chat.sse", 1, 3, " Pa")

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {
    "fireworks": (JudgedBy("fireworks:chat", "fireworks:completions"),),
    "together": (
        JudgedBy(
            "together:chat",
            "together:completions",
            # The SDK has the type of a call in a response here; the documentation has OpenAI's form.
            chat_beyond={"tool_choice": exactly(type=const("function"), function=exactly(name=TEXT))},
        ),
    ),
    "groq": (
        JudgedBy(
            "groq:chat",
            chat_beyond={
                # In the documentation, but not yet in the SDK.
                "stream_options": exactly(include_usage=FLAG)
            },
        ),
    ),
    "mistral": (only("openai.mistral_sdk_types"),),
    "openrouter": (
        JudgedBy(
            "openai.openrouter_sdk_types",
            "openai:completions",
            completions_beyond={"provider": exactly(require_parameters=const(True)), **_SAMPLING},
        ),
    ),
    "perplexity": (openai({"top_k": WHOLE}),),
    "cerebras": (JudgedBy("cerebras:chat", "cerebras:completions"),),
    "sambanova": (JudgedBy("sambanova:chat", "sambanova:completions"),),
    "nim_1": (
        openai(
            {
                "nvext": one_of(
                    top_k=WHOLE,
                    repetition_penalty=NUMBER,
                    guided_json=OBJECT,
                    guided_regex=TEXT,
                    guided_choice=TEXTS,
                    guided_grammar=TEXT,
                )
            }
        ),
    ),
    "hyperbolic": (openai(_SAMPLING),),
    "deepinfra": (openai(_SAMPLING),),
    "nebius": (openai(_SAMPLING),),
    "novita": (openai(_SAMPLING),),
    "databricks": (openai({"top_k": WHOLE}),),
    "cloudflare": (openai({"top_k": WHOLE, "repetition_penalty": NUMBER}),),
    "zai": (openai({}, chat={"user_id": TEXT, "thinking": OBJECT}),),
    "deepseek": (openai({}, chat={"thinking": OBJECT}),),
    "moonshot": (openai({}, chat={"thinking": OBJECT}),),
    "dashscope": (openai({"top_k": WHOLE, "repetition_penalty": NUMBER}),),
    "cohere_compat": (openai({}, chat={"response_format": exactly(type=const("json_object"), schema=OBJECT)}),),
    "vllm": (VLLM,),
    "sglang": (
        openai(
            {**_SAMPLING, "ignore_eos": FLAG, "no_stop_trim": FLAG, "ebnf": TEXT, "regex": TEXT},
            chat={"response_format": _TAGGED},
            completions={"json_schema": TEXT},
        ),
    ),
    "llamacpp": (
        openai({**_LLAMA_SAMPLING, "typical_p": NUMBER, "ignore_eos": FLAG, "grammar": TEXT, "json_schema": OBJECT}),
    ),
    "localai": (openai({**_LLAMA_SAMPLING, "grammar": TEXT}),),
    "lm_studio": (openai({"top_k": WHOLE, "repeat_penalty": NUMBER}),),
    "huggingface": (OPENAI, JudgedBy("openai.huggingface_sdk_types")),
    "tgi": (
        openai(
            {},
            chat={
                "response_format": {
                    "anyOf": [exactly(type=const("json"), value=OBJECT), exactly(type=const("regex"), value=TEXT)]
                }
            },
        ),
    ),
    "pais": (openai({"top_k": WHOLE}, completions={"response_format": _FORMATS}),),
    # The SDKs type messages, tools and formats as plain objects, so they are checked against OpenAI's types as well.
    "scale_genai": (
        JudgedBy("scale_gp_beta:chat", "scale_gp_beta:completions"),
        JudgedBy("scale_gp:chat", "scale_gp:completions"),
        openai({}, chat={"top_k": WHOLE}),
    ),
    "openai_compatible": (openai(_SAMPLING),),
    # The SDK types the content of messages as plain text.
    "ai21": (JudgedBy("openai.ai21_sdk_types"), OPENAI),
}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "openai": FixtureSet(
        target_of("openai", "gpt-4o-mini"),
        chat_request(),
        OPENAI_WHOLE,
        OPENAI_STREAMS,
        (400, "openai/openai/error_400_context.json"),
        "openai/openai/error_429_rate.json",
    )
}

STREAMS: Mapping[str, Stream] = {
    "openai": Stream("openai", LONG_CHAT, OPENAI_FORM, 1),
    "openai, responses": Stream(
        "openai", own_request(), Form("responses/streams/length.sse", 3, 2, "Check"), model="gpt-5.1"
    ),
}
