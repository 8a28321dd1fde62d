"""A process that runs SDKs: it reads a JSON line, calls one SDK, and writes a JSON line.

    PYTHONPATH=DIRECTORY python -S -m tests.e2e.agents.sdk_driver

It imports only the standard library and the SDKs. An order has a `scenario`, a `client`, the gateway's `url` (without
`/v1`) and a `model`, and may have `headers` of its requests:

- `talk`: the client sends `prompt` with a tool, and returns the results of calls until the model makes no call;
  `stream` selects streaming, `stored` stores the conversation in the gateway. The result has `turns`: `thought`,
  `text`, `calls`, `finish`, `usage`.
- `embed` and `moderate`: the `result` is for `texts`; `count`: for `prompt`.
- `keep`: a response is made, retrieved, its input listed, and deleted; the `result` has all of these.
- `media`: a sound is transcribed, a text spoken, and a picture made; the `result` has the three responses.
- `models`: the `result` is the ids of the models in the Messages API's list.

`error` is `None`, or has the `kind`, the `status` and the `message` of the exception.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

Order = Mapping[str, Any]
Turns = list[dict[str, Any]]

KEY = "sk-test"
PARAMETERS = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
DESCRIPTION = "Look a word up."


def lookup(given: Mapping[str, str]) -> str:
    return f"{given['word']} has {len(given['word'])} letters"


def openai(order: Order) -> Any:  # noqa: ANN401 - the SDK is not installed
    from openai import OpenAI  # type: ignore[import-not-found]

    return OpenAI(base_url=f"{order['url']}/v1", api_key=KEY, max_retries=0, default_headers=order.get("headers"))


def anthropic(order: Order) -> Any:  # noqa: ANN401 - the same
    from anthropic import Anthropic

    return Anthropic(base_url=order["url"], api_key=KEY, max_retries=0, default_headers=order.get("headers"))


def chat(order: Order, turns: Turns) -> None:
    """Talk over chat completions."""
    client = openai(order)
    function = {"name": "lookup", "description": DESCRIPTION, "parameters": PARAMETERS}
    messages: list[Any] = [{"role": "user", "content": order["prompt"]}]
    while True:
        body = {"model": order["model"], "messages": messages, "tools": [{"type": "function", "function": function}]}
        if order["stream"]:
            with client.chat.completions.stream(**body, stream_options={"include_usage": True}) as stream:
                answer = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(**body)
        choice = answer.choices[0]
        calls = [(call, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []]
        turns.append(
            {
                "thought": getattr(choice.message, "reasoning_content", None) or "",
                "text": choice.message.content or "",
                "calls": [[call.function.name, given] for call, given in calls],
                "finish": choice.finish_reason,
                "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens],
            }
        )
        if not calls:
            return
        messages.append(choice.message)
        messages += [{"role": "tool", "tool_call_id": call.id, "content": lookup(given)} for call, given in calls]


def responses(order: Order, turns: Turns) -> None:
    """Talk over Responses."""
    client = openai(order)
    tool = {"type": "function", "name": "lookup", "description": DESCRIPTION, "parameters": PARAMETERS, "strict": False}
    items: list[Any] = [{"role": "user", "content": order["prompt"]}]
    state: dict[str, Any] = {} if order["stored"] else {"store": False, "include": ["reasoning.encrypted_content"]}
    while True:
        body = {"model": order["model"], "input": items, "tools": [tool], "reasoning": {"summary": "detailed"}, **state}
        if order["stream"]:
            with client.responses.stream(**body) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**body)
        calls = [(item, json.loads(item.arguments)) for item in answer.output if item.type == "function_call"]
        thoughts = [part.text for item in answer.output if item.type == "reasoning" for part in item.summary]
        turns.append(
            {
                "thought": "".join(thoughts),
                "text": answer.output_text,
                "calls": [[call.name, given] for call, given in calls],
                "finish": answer.status,
                "usage": [answer.usage.input_tokens, answer.usage.output_tokens],
            }
        )
        if not calls:
            return
        results = [
            {"type": "function_call_output", "call_id": call.call_id, "output": lookup(given)} for call, given in calls
        ]
        if order["stored"]:
            items, state = results, {"previous_response_id": answer.id}
        else:
            items = [*items, *answer.output, *results]


def messages(order: Order, turns: Turns) -> None:
    """Talk over Messages."""
    client = anthropic(order)
    tool = {"name": "lookup", "description": DESCRIPTION, "input_schema": PARAMETERS}
    thread: list[Any] = [{"role": "user", "content": order["prompt"]}]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    while True:
        body = {"model": order["model"], "messages": thread, "tools": [tool], "max_tokens": 4096, "thinking": thinking}
        if order["stream"]:
            with client.messages.stream(**body) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**body)
        calls = [block for block in answer.content if block.type == "tool_use"]
        turns.append(
            {
                "thought": "".join([block.thinking for block in answer.content if block.type == "thinking"]),
                "text": "".join([block.text for block in answer.content if block.type == "text"]),
                "calls": [[call.name, call.input] for call in calls],
                "finish": answer.stop_reason,
                "usage": [answer.usage.input_tokens, answer.usage.output_tokens],
            }
        )
        if not calls:
            return
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": lookup(call.input)} for call in calls]
        thread += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


def _embed_openai(order: Order) -> object:
    answer = openai(order).embeddings.create(model=order["model"], input=order["texts"])
    return [item.embedding for item in answer.data]


def _embed_langchain(order: Order) -> object:
    # Its default sends the ids of OpenAI's own tokenizer, whose file it would fetch.
    from langchain_openai import OpenAIEmbeddings  # type: ignore[import-not-found]

    url = f"{order['url']}/v1"
    made = OpenAIEmbeddings(model=order["model"], base_url=url, api_key=KEY, check_embedding_ctx_length=False)
    return made.embed_documents(order["texts"])


def _embed_llama_index(order: Order) -> object:
    from llama_index.embeddings.openai import OpenAIEmbedding  # type: ignore[import-not-found]

    made = OpenAIEmbedding(model_name=order["model"], api_base=f"{order['url']}/v1", api_key=KEY, max_retries=0)
    return made.get_text_embedding_batch(order["texts"])


def _embed_haystack(order: Order) -> object:
    from haystack import Document  # type: ignore[import-not-found]
    from haystack.components.embedders import OpenAIDocumentEmbedder  # type: ignore[import-not-found]
    from haystack.utils import Secret  # type: ignore[import-not-found]

    url, key = f"{order['url']}/v1", Secret.from_token(KEY)
    made = OpenAIDocumentEmbedder(api_key=key, model=order["model"], api_base_url=url, progress_bar=False)
    documents = made.run([Document(content=text) for text in order["texts"]])["documents"]
    return [document.embedding for document in documents]


def _talk_llama_index(order: Order, turns: Turns) -> None:
    """Run one turn over Responses. llama-index requests only text."""
    from llama_index.core.llms import ChatMessage  # type: ignore[import-not-found]
    from llama_index.llms.openai import OpenAIResponses  # type: ignore[import-not-found]

    model = OpenAIResponses(
        model=order["model"], api_base=f"{order['url']}/v1", api_key=KEY, max_retries=0, context_window=8192
    )
    asked = [ChatMessage(role="user", content=order["prompt"])]
    text = [piece for piece in model.stream_chat(asked)][-1].message.content if order["stream"] else None
    turns.append({"text": text or model.chat(asked).message.content})


def _talk_haystack(order: Order, turns: Turns) -> None:
    """Run one turn over Responses."""
    from haystack.components.generators.chat import OpenAIResponsesChatGenerator  # type: ignore[import-not-found]
    from haystack.dataclasses import ChatMessage  # type: ignore[import-not-found]
    from haystack.utils import Secret

    url, key = f"{order['url']}/v1", Secret.from_token(KEY)
    made = OpenAIResponsesChatGenerator(
        api_key=key, model=order["model"], api_base_url=url, streaming_callback=_ignored if order["stream"] else None
    )
    turns.append({"text": made.run([ChatMessage.from_user(order["prompt"])])["replies"][0].text})


def _ignored(chunk: object) -> None:
    """Ignore a chunk. Only the complete response counts."""


TALKS: Mapping[str, Callable[[Order, Turns], None]] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
    "llama_index": _talk_llama_index,
    "haystack": _talk_haystack,
}
EMBEDDERS: Mapping[str, Callable[[Order], object]] = {
    "openai": _embed_openai,
    "langchain": _embed_langchain,
    "llama_index": _embed_llama_index,
    "haystack": _embed_haystack,
}


def _kept(order: Order) -> object:
    client = openai(order)
    made = client.responses.create(model=order["model"], input=order["prompt"])
    again = client.responses.retrieve(made.id)
    items = [item.content[0].text for item in client.responses.input_items.list(made.id)]
    client.responses.delete(made.id)
    try:
        client.responses.retrieve(made.id)
    except Exception as error:
        return [made.output_text, again.output_text, items, type(error).__name__]
    return [made.output_text, again.output_text, items, None]


def _media(order: Order) -> object:
    client, model = openai(order), order["model"]
    heard = client.audio.transcriptions.create(model=model, file=("a.wav", b"RIFF" * 4000)).text
    spoken = client.audio.speech.create(model=model, voice="any", input=order["prompt"]).content
    drawn = client.images.generate(model=model, prompt=order["prompt"]).data[0].b64_json
    return [heard, spoken.decode(), drawn]


def _models(order: Order) -> object:
    return [model.id for model in anthropic(order).models.list()]


def _moderated(order: Order) -> object:
    return openai(order).moderations.create(input=order["texts"]).model_dump(mode="json", exclude_unset=True)


def _counted(order: Order) -> object:
    asked = [{"role": "user", "content": order["prompt"]}]
    return anthropic(order).messages.count_tokens(model=order["model"], messages=asked).model_dump()


SCENARIOS: Mapping[str, Callable[[Order], object]] = {
    "embed": lambda order: EMBEDDERS[order["client"]](order),
    "keep": _kept,
    "media": _media,
    "models": _models,
    "moderate": _moderated,
    "count": _counted,
}


def run(order: Order) -> dict[str, object]:
    """Carry out one order. An exception of the SDK is its result."""
    turns: Turns = []
    try:
        if order["scenario"] == "talk":
            TALKS[order["client"]](order, turns)
            return {"turns": turns, "result": None, "error": None}
        result = SCENARIOS[order["scenario"]](order)
    except Exception as error:
        told = {"kind": type(error).__name__, "status": getattr(error, "status_code", None), "message": str(error)}
        return {"turns": turns, "result": None, "error": told}
    return {"turns": turns, "result": result, "error": None}


def main() -> None:
    os.environ |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false"}
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
