"""Instructions that the gateway adds for the model, after the client's instructions or at the end of a text."""

import pytest

from providers.adaptation.instructions import with_instructions
from providers.constraints.constraint_styles import Unenforceable
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Prompt, TextPrompt, TokenPrompt
from tests.support.looped import looped

RULE: JsonObject = {"role": "developer", "content": "Be kind."}
USER: JsonObject = {"role": "user", "content": "Hi"}
TOLD: JsonObject = {"role": "system", "content": "Do."}


@looped(
    ("prompt", "told"),
    [
        (ChatPrompt((RULE, USER)), ChatPrompt((RULE, TOLD, USER))),
        (ChatPrompt((USER, RULE)), ChatPrompt((TOLD, USER, RULE))),
        (ChatPrompt((RULE,)), ChatPrompt((RULE, TOLD))),
        (TextPrompt(("a", "b")), TextPrompt(("a\n\nDo.", "b\n\nDo."))),
    ],
)
def test_the_words_stand_behind_the_client_s_rules(prompt: Prompt, told: Prompt) -> None:
    assert with_instructions(prompt, "Do.") == told


def test_a_prompt_in_token_ids_takes_no_words() -> None:
    with pytest.raises(Unenforceable, match="no text"):
        with_instructions(TokenPrompt(((1,),)), "Do.")
