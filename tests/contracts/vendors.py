"""Which judges hold the bodies of each row, and what a vendor takes beyond its judge's types. Never a judge.

A row whose vendor publishes no types is held to OpenAI's and to a hand-written list of what its documentation adds: the
sources are those that its row of `providers/profiles.yaml` names, read in November 2026. The list is not made of the
row, so that a row that says too much shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from jsonschema import Draft202012Validator

from providers.profiles import load_profiles
from providers.unified import JsonObject, JsonValue, Operation

Members: TypeAlias = Mapping[str, JsonObject]
"""Members of a body and the JSON Schema of what the vendor takes there."""


@dataclass(frozen=True, slots=True)
class Held:
    """One set of judges of a row: one for each of its operations, None where it has none.

    A member of `beyond`, or of what is beyond for one operation only, is not shown to the judge where it has the form
    that stands there. `elsewhere` stands in for what the vendor is told by the path, and the judge's types have in the
    body.
    """

    chat: str | None = None
    completions: str | None = None
    beyond: Members = field(default_factory=dict)
    chat_beyond: Members = field(default_factory=dict)
    completions_beyond: Members = field(default_factory=dict)
    elsewhere: JsonObject = field(default_factory=dict)

    def operation(self, body: JsonObject) -> Operation:
        """What a body asks, where a row can ask both."""
        if self.completions is None or (self.chat is not None and "messages" in body):
            return Operation.CHAT
        return Operation.COMPLETIONS

    def judge(self, operation: Operation) -> str:
        """Who holds it."""
        judge = self.chat if operation is Operation.CHAT else self.completions
        assert judge is not None
        return judge

    def shown(self, operation: Operation, body: JsonObject) -> JsonObject:
        """The body as the judge is to see it."""
        more = self.chat_beyond if operation is Operation.CHAT else self.completions_beyond
        beyond = {**self.beyond, **more}
        kept = {name: value for name, value in body.items() if name not in beyond or not _is(value, beyond[name])}
        return {**self.elsewhere, **kept}


def _is(value: JsonValue, schema: JsonObject) -> bool:
    return Draft202012Validator(schema).is_valid(value)


NUMBER: Final[JsonObject] = {"type": "number"}
WHOLE: Final[JsonObject] = {"type": "integer"}
FLAG: Final[JsonObject] = {"type": "boolean"}
TEXT: Final[JsonObject] = {"type": "string", "minLength": 1}
TEXTS: Final[JsonObject] = {"type": "array", "items": TEXT, "minItems": 1}
OBJECT: Final[JsonObject] = {"type": "object"}


def const(value: JsonValue) -> JsonObject:
    """That value alone."""
    return {"const": value}


def exactly(**members: JsonObject) -> JsonObject:
    """An object with these members and no other."""
    return {"type": "object", "properties": {**members}, "required": [*members], "additionalProperties": False}


def one_of(**members: JsonObject) -> JsonObject:
    """An object with one of these members."""
    return {"anyOf": [exactly(**{name: schema}) for name, schema in members.items()]}


_WRAPPED = exactly(name=TEXT, schema=OBJECT, strict=FLAG)
_FORMATS: Final[JsonObject] = {
    "anyOf": [exactly(type=const("json_object")), exactly(type=const("json_schema"), json_schema=_WRAPPED)]
}
"""OpenAI's response formats, for vendors that take them with raw prompts too."""

_TAGGED = exactly(type=const("structural_tag"), format=OBJECT)
_SAMPLING: Members = {"top_k": WHOLE, "min_p": NUMBER, "repetition_penalty": NUMBER}
_LLAMA_SAMPLING: Members = {"top_k": WHOLE, "min_p": NUMBER, "repeat_penalty": NUMBER}


def openai(beyond: Members, chat: Members | None = None, completions: Members | None = None) -> Held:
    """OpenAI's types, and what is beyond them for both operations or for one."""
    return Held("openai:chat", "openai:completions", beyond, chat or {}, completions or {})


def only(judge: str) -> Held:
    """A native dialect's own judge, for both operations."""
    return Held(judge, judge)


OPENAI = openai({})
_GUIDED = one_of(regex=TEXT, choice=TEXTS, grammar=TEXT, json=OBJECT)

VLLM = openai(
    {
        **_SAMPLING,
        "ignore_eos": FLAG,
        "include_stop_str_in_output": FLAG,
        # Under the newer name and the older ones at once, of which each version reads its own.
        "structured_outputs": _GUIDED,
        "guided_regex": TEXT,
        "guided_choice": TEXTS,
        "guided_grammar": TEXT,
    },
    chat={"response_format": _TAGGED},
    completions={"response_format": {"anyOf": [_FORMATS, _TAGGED]}},
)

VENDORS: Final[Mapping[str, tuple[Held, ...]]] = {
    "fireworks": (Held("fireworks:chat", "fireworks:completions"),),
    "together": (
        Held(
            "together:chat",
            "together:completions",
            # The SDK has the type of a model's call here; the documentation has OpenAI's form.
            chat_beyond={"tool_choice": exactly(type=const("function"), function=exactly(name=TEXT))},
        ),
    ),
    "groq": (
        Held(
            "groq:chat",
            chat_beyond={
                # In the documentation, and not yet in the SDK.
                "stream_options": exactly(include_usage=FLAG),
            },
        ),
    ),
    "mistral": (only("mistral"),),
    "openrouter": (
        Held(
            "openrouter",
            "openai:completions",
            completions_beyond={"provider": exactly(require_parameters=const(True)), **_SAMPLING},
        ),
    ),
    "perplexity": (openai({"top_k": WHOLE}),),
    "cerebras": (Held("cerebras:chat", "cerebras:completions"),),
    "sambanova": (Held("sambanova:chat", "sambanova:completions"),),
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
    "zai": (openai({}, chat={"user_id": TEXT}),),
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
        openai(
            {**_LLAMA_SAMPLING, "typical_p": NUMBER, "ignore_eos": FLAG, "grammar": TEXT, "json_schema": OBJECT},
        ),
    ),
    "localai": (openai({**_LLAMA_SAMPLING, "grammar": TEXT}),),
    "lm_studio": (openai({"top_k": WHOLE, "repeat_penalty": NUMBER}),),
    "huggingface": (OPENAI, Held("huggingface")),
    "tgi": (
        openai(
            {},
            chat={
                "response_format": {
                    "anyOf": [
                        exactly(type=const("json"), value=OBJECT),
                        exactly(type=const("regex"), value=TEXT),
                    ]
                }
            },
        ),
    ),
    "pais": (openai({"top_k": WHOLE}, completions={"response_format": _FORMATS}),),
    # The SDKs have messages, tools and formats as mere objects, so those are held to OpenAI's types as well.
    "scale_genai": (
        Held("scale_gp_beta:chat", "scale_gp_beta:completions"),
        Held("scale_gp:chat", "scale_gp:completions"),
        openai({}, chat={"top_k": WHOLE}),
    ),
    "openai_compatible": (openai(_SAMPLING),),
    "anthropic": (Held("anthropic"),),
    "vertex_anthropic": (Held("anthropic_vertex"),),
    "cohere": (Held("cohere"),),
    "ollama_native": (only("ollama"),),
    "llamacpp_native": (Held(completions="llamacpp"),),
    "tgi_native": (Held(completions="tgi"),),
    "sglang_native": (Held(completions="sglang"),),
    "triton": (Held(completions="triton"),),
    "llm_engine": (Held(completions="llm_engine"),),
    "gemini": (Held("gemini"),),
    "vertex": (Held("gemini"),),
    "bedrock": (Held("bedrock"),),
    "bedrock_anthropic": (Held("bedrock_anthropic"),),
    "bedrock_invoke": (Held(completions="bedrock_invoke"),),
    "sagemaker": (replace(VLLM, elsewhere={"model": "model"}),),
    "sagemaker_tgi": (Held(completions="tgi", beyond={"stream": FLAG}),),
    "watsonx": (only("watsonx"),),
    "replicate": (Held(completions="replicate"),),
    # The SDK's messages are mere texts.
    "ai21": (Held("ai21"), OPENAI),
}
"""By row. A body must pass all that stands there."""


def held(row: str) -> tuple[Held, ...]:
    """Who holds the bodies of a row: OpenAI's types alone where it speaks OpenAI's dialect and nothing else is said.
    Raises KeyError where nobody does."""
    spoken = load_profiles()[row].dialect
    return VENDORS.get(row, (OPENAI,)) if spoken == "openai" else VENDORS[row]


JUDGED_BY_ITSELF: Final = frozenset({"mock"})
"""The vendor inside the gateway, which takes what a client may say."""
