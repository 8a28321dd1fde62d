"""The fields of tasks, and their support by each vendor as one cell per field.

Encoders refuse fields by these cells, `dragoman vendors` prints them, and the conformance tests check every cell.
"""

from collections.abc import Mapping
from typing import Final

from providers.capabilities import LEFT_OUT, NATIVE, Cell, Support, emulated, refused
from providers.profile import Profile
from providers.request_fields import ADVISORY, BINDING, STEERING, FieldClass
from providers.unified_request import Task

TOKENS: Final = "input.tokens"

TASK_FIELDS: Mapping[Task, Mapping[str, FieldClass]] = {
    Task.EMBEDDINGS: {
        TOKENS: BINDING,
        "encoding_format": BINDING,
        "dimensions": BINDING,
        "input_type": STEERING,
        "truncate": BINDING,
        "user": ADVISORY,
        "unknown": STEERING,
    },
    Task.RERANK: {
        "top_n": BINDING,
        "return_documents": BINDING,
        "max_tokens_per_doc": STEERING,
        "truncate": BINDING,
        "user": ADVISORY,
        "unknown": STEERING,
    },
}
"""The optional fields of each task that the gateway translates, with their class. `unknown` stands for all other
fields.
"""

_CELLS_IF_ABSENT: Mapping[str, Cell] = {
    TOKENS: refused(
        "token ids are meaningful only to the tokenizer that made them; send text (LangChain: "
        "check_embedding_ctx_length=False)"
    ),
    "encoding_format": emulated("the gateway writes the numbers in the requested form"),
    "dimensions": refused("its vectors have one length, and the gateway does not cut them"),
    "input_type": refused("it does not distinguish queries from documents"),
    "truncate": Cell(
        Support.LEFT_OUT, "the client permits a cut but does not require it, and the vendor has no switch for it"
    ),
    "user": LEFT_OUT,
    "unknown": refused("the vendor refuses fields it does not know"),
    "top_n": emulated("the list is cut"),
    "max_tokens_per_doc": refused("it has no such limit"),
}
"""The cells of fields that a vendor does not have."""

_EMULATED_ALWAYS: Mapping[str, Cell] = {"return_documents": emulated("the texts are taken from the request")}

PROTECTED: Final = frozenset(
    {"model", "model_id", "input", "inputs", "inputtext", "texts", "images", "content", "contents", "requests"}
    | {"instances", "documents", "passages", "query", "queries", "sources", "messages", "prompt", "encoding_format"}
)
"""Fields that no client may add: the gateway writes them itself, or they would add inputs that are not priced."""

VECTOR_FORMS: Mapping[str, tuple[object, ...]] = {
    "output_dtype": ("float",),
    "embedding_types": (["float"],),
    "embedding_type": ("float",),
    "embed_dtype": ("float32",),
    "endianness": ("native", "little"),
    "return_multivector": (False,),
}
"""Fields that can change the number format of vectors, with the values that keep single floats. Sources: cohere 7.3.1,
voyageai 0.5.0, Jina's "Embeddings API", vLLM 0.33 sources, November 2026."""


def task_cells(profile: Profile, task: Task) -> Mapping[str, Cell]:
    """Return a cell for each field of a task. All cells are refusals if the vendor does not have the task."""
    wire = profile.tasks.get(task)
    if wire is None:
        return dict.fromkeys(TASK_FIELDS[task], no_task(task))
    accepted = wire.accepts | ({"unknown"} if profile.forwards_unknown else set())
    return {
        name: _EMULATED_ALWAYS.get(name) or (NATIVE if name in accepted else _CELLS_IF_ABSENT[name])
        for name in TASK_FIELDS[task]
    }


def no_task(task: Task) -> Cell:
    """Return the cell of every field if a vendor does not have the task."""
    return refused(f"its profile has no {task}")
