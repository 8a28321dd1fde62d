"""Triton's generate extension with TensorRT-LLM's tensors.

Shapes: triton-inference-server/server `docs/protocol/extension_generate.md`; NVIDIA/TensorRT-LLM
`tensorrt_llm_bls/config.pbtxt`.
"""

from collections.abc import Mapping

from providers.json_types import JsonObject
from tests.conformance.engine import WINDOW, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint, pieces, strings, whole_number
from tests.support.http_scripts import data_frames

_GUIDES: Mapping[str, str] = {"json_schema": "json_schema", "regex": "regex", "ebnf_grammar": "grammar"}


def _read_request(body: JsonObject) -> EngineRequest:
    guide = body.get("guided_decoding_guide_type")
    return EngineRequest(
        strings(body["text_input"]),
        stops=strings(body.get("stop_words")),
        keep_stop=True,
        limit=whole_number(body, "max_tokens"),
        text=constrained({_GUIDES[str(guide)]: body["guided_decoding_guide"]}) if guide else None,
    )


def _streams(path: str, body: JsonObject) -> bool:
    return path.endswith("_stream") and body.get("stream") is True


def _response(text: str) -> JsonObject:
    return {"model_name": "ensemble", "model_version": "1", "sequence_end": False, "text_output": text}


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    counts: JsonObject = {"num_input_tokens": answered.prompt_tokens, "num_output_tokens": answered.generated}
    return {**_response(written.text), **counts}


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    """Return responses that each count the tokens in them."""
    (written,) = answered.choices
    texts = pieces(written)
    own = [1 if number < answered.generated else 0 for number in range(len(texts))]
    own[-1] += answered.generated - sum(own)
    prompt = answered.prompt_tokens
    return data_frames(
        *(
            {**_response(text), "num_input_tokens": prompt, "num_output_tokens": count}
            for text, count in zip(texts, own, strict=True)
        )
    )


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return the error of a prompt that is too long. Only a prompt can be: the response ends at the window's end."""
    told = f"Prompt length ({prompt_tokens(request)}) exceeds maximum input length ({WINDOW})."
    return 500, {"error": f"Executor failed process requestId 7 due to the following error: {told}"}


TRITON = FakeDialect(
    calls=(FakeEndpoint(("/generate", "/generate_stream"), _read_request, _whole, _frames, _streams),),
    too_large=_too_large,
)

FAKE_DIALECTS = {"triton": TRITON}
