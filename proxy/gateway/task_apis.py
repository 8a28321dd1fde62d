"""The tasks that are translated, each with its parser, its calls and its renderer, for serving and for a dry run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from providers.completion import Usage
from providers.dialect import TaskCalls
from providers.target import OnUnsupported, Target
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest
from providers.tasks.forms.prepare_task import embeddings_calls, rerank_calls
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.task_draft import TaskRequest, profile_of
from providers.unified_request import Task
from proxy.dispatch.exchange import ClientRequest
from proxy.errors import FieldProblem, invalid_request
from proxy.routing.request_plan import Plan
from proxy.surfaces.surface import AnswerFacts
from proxy.surfaces.tasks.embeddings import parse_embeddings, render_embeddings
from proxy.surfaces.tasks.rerank import parse_rerank, render_rerank


class ClientTask(ClientRequest, TaskRequest, Protocol):
    """A client's parsed request for a task."""

    @property
    def model(self) -> str:
        """The client's model string."""

    @property
    def user(self) -> str | None:
        """The end user that the client names."""


class TaskAnswer(Protocol):
    """The response to a task."""

    @property
    def usage(self) -> Usage | None:
        """The vendor's usage; `None` if it is unknown."""


Q = TypeVar("Q", bound=ClientTask)
A = TypeVar("A", bound=TaskAnswer)


def anywhere(plan: Plan) -> None:
    """Accept any plan: the task may go to each of its targets."""


def in_one_space(plan: Plan) -> None:
    """Raise GatewayError for a plan over models whose vectors need not be comparable: a fallback from one model to
    another would silently mix incomparable vectors in the client's store.

    Models of vendors without embeddings do not count. Equal model names at two vendors do not prove that the vectors
    are comparable: Azure's names are names of deployments, and engines differ in pooling and precision."""
    if plan.same_space:
        return
    able = (target for target in plan.every_target if Task.EMBEDDINGS in profile_of(target).tasks)
    models = tuple(dict.fromkeys(f"{target.vendor}/{target.model}" for target in able))
    if len(models) <= 1:
        return
    message = (
        f"'{plan.asked}' stands for several models ({', '.join(models)}), whose vectors need not be comparable. "
        "Ask for one of them; where they are comparable, the operator says so with 'same_space: true' at the route."
    )
    raise invalid_request((FieldProblem(("model",), message),))


@dataclass(frozen=True, slots=True, eq=False)
class TaskApi(Generic[Q, A]):
    """One task. `parse` takes a body and the default for a body that names no model; `inputs` is the field whose size a
    vendor may refuse. `calls` may raise Refusal; `parse` and `check` may raise GatewayError. `size` returns the number
    of numbers in a response, on which the time for rendering depends. `repeats` returns the number of characters of a
    request that the model reads again, in addition to its body."""

    inputs: str
    parse: Callable[[bytes, str | None], Q]
    check: Callable[[Plan], None]
    calls: Callable[[Q, Target, OnUnsupported], TaskCalls[A]]
    render: Callable[[Q, A, AnswerFacts], bytes]
    size: Callable[[A], int]
    repeats: Callable[[Q], int]


def _numbers(answer: Embeddings) -> int:
    return answer.numbers


def _places(answer: Ranking) -> int:
    return len(answer.results)


def _nothing(request: EmbeddingsRequest) -> int:
    return 0


def _query(request: RerankRequest) -> int:
    """Return the number of characters of the query, once for each document except the first."""
    return len(request.query) * (len(request.documents) - 1)


EMBEDDINGS: TaskApi[EmbeddingsRequest, Embeddings] = TaskApi(
    "input", parse_embeddings, in_one_space, embeddings_calls, render_embeddings, _numbers, _nothing
)
RERANK: TaskApi[RerankRequest, Ranking] = TaskApi(
    "documents", parse_rerank, anywhere, rerank_calls, render_rerank, _places, _query
)

# Any: each task has its own types, which a look-up by task does not distinguish.
TASK_APIS: Mapping[Task, TaskApi[Any, Any]] = {Task.EMBEDDINGS: EMBEDDINGS, Task.RERANK: RERANK}
