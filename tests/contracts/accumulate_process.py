"""The process that accumulates streams with OpenAI's own SDK, one stream per line, in the environment of that SDK.

`test_sdk_accumulators.py` starts it: a line is `{"kind": "chat" or "response", "events": [...]}`.
"""

import json
import sys
from typing import Any


def chat(events: list[dict[str, Any]]) -> dict[str, object]:
    """Return the chat completion that the SDK makes of the chunks."""
    from openai.lib.streaming.chat import ChatCompletionStreamState  # type: ignore[import-not-found]
    from openai.types.chat import ChatCompletionChunk  # type: ignore[import-not-found]

    state = ChatCompletionStreamState()
    for event in events:
        state.handle_chunk(ChatCompletionChunk.construct(**event))
    made: dict[str, object] = state.current_completion_snapshot.to_dict(mode="json", warnings=False)
    return made


def response(events: list[dict[str, Any]]) -> dict[str, object]:
    """Return the response of the last event, after the SDK has accumulated every event."""
    from openai import omit  # type: ignore[import-not-found]
    from openai._models import construct_type  # type: ignore[import-not-found]
    from openai.lib.streaming.responses._responses import ResponseStreamState  # type: ignore[import-not-found]
    from openai.types.responses import ResponseStreamEvent  # type: ignore[import-not-found]

    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    last: Any = None
    for event in events:
        for shown in state.handle_event(construct_type(value=event, type_=ResponseStreamEvent)):
            last = shown
    made: dict[str, object] = last.response.to_dict(mode="json", warnings=False)
    return made


def main() -> None:
    """Write a result for each line of standard input."""
    for line in sys.stdin:
        order = json.loads(line)
        try:
            made = (chat if order["kind"] == "chat" else response)(order["events"])
        except Exception as error:  # the exception is the result, and fails the test
            made = {"raised": repr(error)}
        print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main()
