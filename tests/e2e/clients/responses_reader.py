"""A process that reads streamed and non-streaming responses of the Responses API with openai's own SDK, offline.

    PYTHONPATH=DIRECTORY python -S -m tests.e2e.clients.responses_reader

One line in, one line out: `{"stream": text}` returns the response that the SDK's accumulator joins and the types of the
events, or the exception; `{"whole": text}` the response as the SDK parses it. It imports only the standard library and
the SDK with its own HTTP client.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

Foreign: TypeAlias = Any  # an object of the SDK, which is not installed where this file is type-checked


def client_of(body: str, kind: str) -> Foreign:
    """Return a client that gets one response."""
    import httpx2
    from openai import OpenAI  # type: ignore[import-not-found]

    def answer(request: Foreign) -> Foreign:
        return httpx2.Response(200, headers={"content-type": kind}, content=body.encode())

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return OpenAI(api_key="k", base_url="http://gateway/v1", http_client=transport, max_retries=0)


def read(order: Mapping[str, str]) -> dict[str, object]:
    """Return the result of one order."""
    if "whole" in order:
        response = client_of(order["whole"], "application/json").responses.create(model="m", input="hi")
        return {"response": response.to_dict(mode="json"), "text": response.output_text}
    events: list[str] = []
    try:
        with client_of(order["stream"], "text/event-stream").responses.stream(model="m", input="hi") as stream:
            for event in stream:
                events.append(event.type)
            final = stream.get_final_response()
    except Exception as error:  # an exception of the SDK is the result
        return {"error": type(error).__name__, "message": str(error), "events": events}
    return {"response": final.to_dict(mode="json"), "text": final.output_text, "events": events}


def main() -> None:
    """Carry out orders until the input ends."""
    for line in sys.stdin:
        print(json.dumps(read(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
