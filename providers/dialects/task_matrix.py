"""The capability matrix of tasks: the support of each field of embeddings and rerank by each vendor."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from providers.capabilities import Cell
from providers.profile import Profile, TaskWire
from providers.tasks.task_fields import TASK_FIELDS, task_cells
from providers.unified_request import Task


@dataclass(frozen=True, slots=True)
class TaskMatrixEntry:
    """The cells of one task with one model of a vendor, and the wire settings of the task."""

    profile: str
    model: str
    task: Task
    wire: TaskWire
    cells: Mapping[str, Cell]


def task_entries(profiles: Iterable[Profile]) -> Iterator[TaskMatrixEntry]:
    """Yield an entry for each example model of each task of each vendor."""
    for profile in profiles:
        for task in TASK_FIELDS:
            wire = profile.tasks.get(task)
            for model in () if wire is None else wire.examples:
                of_model = profile.for_model(model)
                cells = task_cells(of_model, task)
                yield TaskMatrixEntry(profile.name, model, task, of_model.tasks[task], cells)
