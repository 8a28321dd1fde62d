"""The fields of tasks, with what happens to each on a vendor: one table of cells for each task.

Encoders refuse by these cells, `dragoman vendors` prints them, and the conformance tests visit every one.
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
"""The optional fields of each task that the gateway translates, with their class. `unknown` is for fields outside them.
"""

_ABSENT: Mapping[str, Cell] = {
    TOKENS: refused(
        "token ids mean something to the tokenizer that made them alone; send text (LangChain: "
        "check_embedding_ctx_length=False)"
    ),
    "encoding_format": emulated("the gateway writes the numbers in the form that is asked for"),
    "dimensions": refused("its vectors have one length, and the gateway does not cut them"),
    "input_type": refused("it does not tell queries from documents"),
    "truncate": Cell(Support.LEFT_OUT, "a cut is permitted, not asked for, and it has no switch for one"),
    "user": LEFT_OUT,
    "unknown": refused("the vendor refuses fields it does not know"),
    "top_n": emulated("the list is cut"),
    "max_tokens_per_doc": refused("it has no such limit"),
}
"""What happens to a field that a vendor does not have."""

_BY_GATEWAY: Mapping[str, Cell] = {"return_documents": emulated("the texts are those of the request")}

PROTECTED: Final = frozenset(
    {"model", "model_id", "input", "inputs", "inputtext", "texts", "images", "content", "contents", "requests"}
    | {"instances", "documents", "passages", "query", "queries", "sources", "messages", "prompt", "encoding_format"}
)
"""Members that no client may add: the gateway writes them, or they would be other inputs than those that are priced."""

VECTOR_FORMS: Mapping[str, tuple[object, ...]] = {
    "output_dtype": ("float",),
    "embedding_types": (["float"],),
    "embedding_type": ("float",),
    "embed_dtype": ("float32",),
    "endianness": ("native", "little"),
    "return_multivector": (False,),
}
"""Members by which vectors would be no single floats, with the values that leave them as they are. Sources: cohere
7.3.1, voyageai 0.5.0, Jina's "Embeddings API", vLLM 0.33 sources, November 2026."""


def task_cells(profile: Profile, task: Task) -> Mapping[str, Cell]:
    """Return a cell for each field of a task; all refuse where the vendor does not have the task."""
    wire = profile.tasks.get(task)
    if wire is None:
        return dict.fromkeys(TASK_FIELDS[task], no_task(task))
    taken = wire.accepts | ({"unknown"} if profile.forwards_unknown else set())
    return {name: _BY_GATEWAY.get(name) or (NATIVE if name in taken else _ABSENT[name]) for name in TASK_FIELDS[task]}


def no_task(task: Task) -> Cell:
    """Return the cell of every field of a task that a vendor does not have."""
    return refused(f"its profile has no {task}")
