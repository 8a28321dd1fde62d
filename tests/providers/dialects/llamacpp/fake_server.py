"""A fake of llama.cpp's own API. Shapes: `tools/server/README.md`; the server of xllamacpp 2026.10."""

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint, pieces, strings, whole_number
from tests.support.http_scripts import data_frames


def _prompts(body: JsonObject) -> tuple[str, ...]:
    prompt = body.get("prompt", body.get("input_prefix"))
    if not isinstance(prompt, list) or isinstance(prompt[0], str):
        return strings(prompt)
    sequences = prompt if isinstance(prompt[0], list) else [prompt]
    return tuple(" ".join(map(str, ids)) for ids in sequences if isinstance(ids, list))


def _read_request(body: JsonObject) -> EngineRequest:
    return EngineRequest(
        _prompts(body), stops=strings(body.get("stop")), limit=whole_number(body, "n_predict"), text=constrained(body)
    )


def _scored(body: JsonObject, written: EngineChoice) -> list[JsonObject]:
    if not body.get("n_probs"):
        return []
    entries: list[JsonObject] = []
    for token, logprob in written.tokens:
        own: JsonObject = {"id": 1, "token": token, "bytes": list(token.encode()), "logprob": logprob}
        entries.append({**own, "top_logprobs": [own]})
    return entries


def _result(body: JsonObject, answered: EngineAnswer, index: int, text: str) -> JsonObject:
    written, prompt = answered.choices[index], _prompts(body)[index]
    kind = "word" if written.stop else "limit" if written.finish == "length" else "eos"
    return {
        "index": index,
        "content": text,
        "tokens": [],
        "stop": True,
        "tokens_predicted": answered.generated // len(answered.choices),
        "tokens_evaluated": len(prompt.split()),
        "stop_type": kind,
        "stopping_word": written.stop or "",
        "truncated": False,
        "timings": {"cache_n": 0},
    }


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonValue:
    results: list[JsonValue] = []
    for index, written in enumerate(answered.choices):
        scored: list[JsonValue] = [*_scored(body, written)]
        more: JsonObject = {"completion_probabilities": scored} if scored else {}
        results.append({**_result(body, answered, index, written.text), **more})
    return results if len(results) > 1 else results[0]


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    events: list[JsonObject] = []
    for index, written in enumerate(answered.choices):
        scored = _scored(body, written)
        texts = [str(entry["token"]) for entry in scored] or pieces(written)
        for place, text in enumerate(texts):
            more: JsonObject = {"completion_probabilities": [scored[place]]} if scored else {}
            events.append({"index": index, "content": text, "tokens": [1], "stop": False, **more})
        events.append(_result(body, answered, index, ""))
    return [b"data: null\n\n", *data_frames(*events)]


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return the error of a prompt that is too long. Only a prompt can be: the response ends at the window's end."""
    tokens = prompt_tokens(request)
    error: JsonObject = {
        "code": 400,
        "message": f"request ({tokens} tokens) exceeds the available context size ({WINDOW} tokens)",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": tokens,
        "n_ctx": WINDOW,
    }
    return 400, {"error": error}


def _tokens(body: JsonObject) -> JsonValue:
    return {"tokens": list(range(len(str(body["content"]).split())))}


def _props(body: JsonObject) -> JsonValue:
    return {"default_generation_settings": {"n_ctx": WINDOW}}


LLAMACPP = FakeDialect(
    calls=(FakeEndpoint(("/completion", "/infill"), _read_request, _whole, _frames),),
    too_large=_too_large,
    questions={"/tokenize": _tokens, "/props": _props},
)

FAKE_DIALECTS = {"llamacpp": LLAMACPP}
