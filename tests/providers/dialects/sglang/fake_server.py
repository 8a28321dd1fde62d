"""SGLang's own wire. Shapes: `sglang` 0.5.23 `GenerateRequest`, `GenerateResponse`."""

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint, pieces, strings, whole_number
from tests.support.http_scripts import DONE, data_frames


def _sampling(body: JsonObject) -> JsonObject:
    sampling = body["sampling_params"]
    return sampling if isinstance(sampling, dict) else {}


def _prompts(body: JsonObject) -> tuple[str, ...]:
    ids = body.get("input_ids")
    if not isinstance(ids, list):
        return strings(body["text"])
    sequences = ids if isinstance(ids[0], list) else [ids]
    return tuple(" ".join(map(str, sequence)) for sequence in sequences if isinstance(sequence, list))


def _read_request(body: JsonObject) -> EngineRequest:
    sampling = _sampling(body)
    tag = sampling.get("structural_tag")
    return EngineRequest(
        _prompts(body),
        n=whole_number(sampling, "n") or 1,
        stops=strings(sampling.get("stop")),
        keep_stop=sampling.get("no_stop_trim") is True,
        limit=whole_number(sampling, "max_new_tokens"),
        text=constrained(orjson.loads(tag) if isinstance(tag, str) else sampling),
    )


def _finish(written: EngineChoice, generated: int) -> JsonObject:
    if written.finish == "length":
        return {"type": "length", "length": generated}
    return {"type": "stop", "matched": written.stop or 2}


def _triples(tokens: tuple[tuple[str, float | None], ...]) -> list[JsonValue]:
    return [[logprob, 1, token] for token, logprob in tokens]


def _meta(body: JsonObject, answered: EngineAnswer, index: int, *, ended: bool) -> JsonObject:
    written = answered.choices[index]
    request = _read_request(body)
    generated = answered.generated // len(answered.choices)
    prompt = request.prompts[index // request.n]
    meta: JsonObject = {
        "id": f"answer-{index}",
        "finish_reason": _finish(written, generated) if ended else None,
        "prompt_tokens": len(prompt.split()),
        "completion_tokens": generated,
        "cached_tokens": 0,
    }
    if body.get("return_logprob"):
        triples = _triples(written.tokens)
        meta |= {"output_token_logprobs": triples, "output_top_logprobs": [[triple] for triple in triples]}
    if "logprob_start_len" in body:
        words = prompt.split(" ")
        tokens = tuple((f" {word}" if place else word, -0.1 if place else None) for place, word in enumerate(words))
        meta["input_token_logprobs"] = _triples(tokens)
    return meta


def _result(body: JsonObject, answered: EngineAnswer, index: int, text: str, *, ended: bool) -> JsonObject:
    meta = _meta(body, answered, index, ended=ended)
    ids: list[JsonValue] = [1] * (answered.generated // len(answered.choices))
    return {"text": text, "output_ids": ids, "meta_info": meta}


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonValue:
    results: list[JsonValue] = [
        _result(body, answered, index, written.text, ended=True) for index, written in enumerate(answered.choices)
    ]
    return results if len(results) > 1 else results[0]


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    """Return events that each repeat the text so far."""
    events: list[JsonObject] = []
    for index, written in enumerate(answered.choices):
        so_far = ""
        for piece in pieces(written):
            so_far += piece
            events.append({**_result(body, answered, index, so_far, ended=False), "index": index})
        events.append({**_result(body, answered, index, written.text, ended=True), "index": index})
    return [*data_frames(*events), DONE]


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    prompt, limit = prompt_tokens(request), request.limit or 0
    message = (
        f"Requested token count exceeds the model's maximum context length of {WINDOW} tokens. You requested a total "
        f"of {prompt + limit} tokens: {prompt} tokens from the input messages and {limit} tokens for the completion."
    )
    return 400, {"error": {"message": message}}


SGLANG = FakeDialect(calls=(FakeEndpoint(("/generate",), _read_request, _whole, _frames),), too_large=_too_large)

FAKE_DIALECTS = {"sglang": SGLANG}
