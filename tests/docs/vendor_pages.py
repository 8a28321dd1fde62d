"""A page for each profile in `docs/reference/vendors`, and the list of them: `python -m tests.docs.vendor_pages`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar

from providers.capabilities import Cell, Support
from providers.dialects.capability_matrix import MatrixEntry, count_cells, matrix_entries
from providers.dialects.task_matrix import TaskMatrixEntry, task_entries
from providers.profile import Profile
from providers.profiles.load_profiles import load_profiles
from providers.tasks.task_fields import TASK_FIELDS
from providers.unified_request import Operation
from tests.docs.marked_pages import DOCS, in_cell, replaced

FOLDER: Final = DOCS / "reference" / "vendors"
INDEX: Final = FOLDER / "index.md"
BEGIN: Final = "<!-- profiles: written by `python -m tests.docs.vendor_pages` -->"
END: Final = "<!-- end of profiles -->"

TITLES: Final = {Operation.CHAT: "Chat completions", Operation.COMPLETIONS: "Completions"}
CREDENTIALS: Final = {"aws": "AWS", "google": "Google", "entra": "Entra"}
WINDOW: Final = {
    "native": "is handled by `context_length_exceeded_behavior`",
    "errors": "is refused",
    "clamps": "gets a shorter response",
    "cuts": "loses a part of its prompt",
    "never": "does not exist",
}

MatrixRow = MatrixEntry | TaskMatrixEntry
_E = TypeVar("_E", MatrixEntry, TaskMatrixEntry)


@cache
def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {f"{name}.md": vendor_page(profile) for name, profile in sorted(load_profiles().items())}


def index(page: str) -> str:
    """Return the overview with the list of the profiles between its marks."""
    return replaced(page, BEGIN, "\n".join(_index_rows()), END)


def vendor_page(profile: Profile) -> str:
    """Return the page of one profile: its facts, and the support of each field."""
    head = f"# {profile.name}\n\nWritten by `make generate` from `providers/profiles/profiles.yaml`.\n\n"
    facts = "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in _facts(profile))])
    sections = [*_text_sections(profile), *_task_sections(profile)]
    return f"{head}{facts}\n" + "".join(f"\n{section}\n" for section in sections)


def _index_rows() -> Iterator[str]:
    yield "| profile | dialect | address | native | emulated | left out | refused |"
    yield "|---|---|---|---|---|---|---|"
    for name, profile in sorted(load_profiles().items()):
        counts = " | ".join(map(str, count_cells(matrix_entries([profile])).values()))
        yield f"| [`{name}`]({name}.md) | `{profile.dialect}` | {_address(profile)} | {counts} |"


def _address(profile: Profile) -> str:
    return f"`{profile.base_url}`" if profile.base_url else "`base_url` is required"


def _facts(profile: Profile) -> Iterator[tuple[str, str]]:
    yield "address", _address(profile)
    if profile.placeholders:
        yield "`url_params`", _named(profile.placeholders)
    yield "dialect", f"`{profile.dialect}`"
    yield "credential", _credential(profile)
    if profile.api_version:
        yield "API version", f"`{profile.api_version}`, unless `api_version` is written"
    for operation, wire in profile.wires.items():
        yield f"path of {operation}", f"`{wire.path}`; a request beyond the context window {WINDOW[wire.context]}"
    if profile.responses is not None:
        made = [each.responses.when for _, each in profile.overrides if each.responses is not None]
        others = _named(when for when in dict.fromkeys(made) if when != profile.responses.when)
        uses = f"`{profile.responses.when}`" + (f", or by model {others}" if others else "")
        yield "Responses API", f"`{profile.responses.path}`; requests of other APIs go there: {uses}"
    if profile.tasks:
        yield "tasks", ", ".join(f"{task} (`{wire.path}`)" for task, wire in profile.tasks.items())
    yield "prompts", _prompts(profile)
    yield "kind", "an engine that operators run themselves" if profile.engine else "a hosted API"
    yield "fields outside the unified request", "sent to the vendor" if profile.forwards_unknown else "refused"
    yield "constraints", f"the form `{profile.structured}`" + (", checked in the response" if profile.verifies else "")
    if profile.hosted:
        yield "tools that it runs", _named(profile.hosted)
    for kind, reason in profile.not_hosted.items():
        yield f"no `{kind}`", reason
    yield "models list (`discover`)", "yes" if profile.model_list else "no"
    yield "`stream_upstream: auto`", "yes" if profile.exact_streams else "no"
    if profile.session is not None:
        places = [f"header `{profile.session.header}`" if profile.session.header else ""]
        places.append(f"field `{profile.session.field}`" if profile.session.field else "")
        yield "`affinity: {send: true}`", " and ".join(filter(None, places))


def _credential(profile: Profile) -> str:
    auth = profile.auth
    if auth.style == "none":
        return "none"
    shown = "`Authorization: Bearer KEY`" if auth.style == "bearer" else f"`{auth.header}: KEY`"
    exchanged = f", exchanged for a token at `{auth.exchange}`" if auth.exchange else ""
    fallback = f"; without a key {CREDENTIALS[auth.fallback]} credentials" if auth.fallback else ""
    return f"{shown}{exchanged}{fallback}" + ("" if auth.required else "; optional")


def _prompts(profile: Profile) -> str:
    if not isinstance(profile.raw_prompts, str):
        return f"unchanged for models that match {in_cell(profile.raw_prompts.pattern)}, else as a chat"
    words = {"native": "unchanged", "chat": "as a chat", "suffix": "as a chat, unchanged with a `suffix`"}
    return words[profile.raw_prompts]


def _text_sections(profile: Profile) -> Iterator[str]:
    """Yield a section for each operation and each group of models with the same cells."""
    for operation, title in TITLES.items():
        entries = [entry for entry in matrix_entries([profile]) if entry.operation is operation]
        first, *others = _alike(entries) or [[]]
        for group in (first, *others):
            heading = f"{title} with {_named(entry.model for entry in group)}" if others else title
            if group and group[0].closed:
                yield f"## {heading}\n\nRefused: {group[0].closed}."
            elif group:
                yield f"## {heading}\n\n{_differing(group, first)}"


def _task_sections(profile: Profile) -> Iterator[str]:
    for task in TASK_FIELDS:
        entries = [entry for entry in task_entries([profile]) if entry.task is task]
        first, *others = _alike(entries) or [[]]
        for group in (first, *others):
            heading = str(task).capitalize() + (f" with {_named(entry.model for entry in group)}" if others else "")
            if group:
                most = group[0].wire.most
                one_call = f"At most {most} inputs in one call.\n\n" if most else ""
                yield f"## {heading}\n\n{one_call}{_differing(group, first)}"


def _alike(entries: Sequence[_E]) -> list[list[_E]]:
    """Return the entries in groups with equal cells, in their order."""
    groups: list[list[_E]] = []
    for entry in entries:
        group = next((each for each in groups if each[0].cells == entry.cells), None)
        if group is None:
            groups.append([entry])
        else:
            group.append(entry)
    return groups


def _differing(group: Sequence[MatrixRow], first: Sequence[MatrixRow]) -> str:
    """Return the lists of a group; of another than the first only the fields that differ from the first."""
    if group is first or (isinstance(first[0], MatrixEntry) and first[0].closed):
        return _lists(group[0].cells)
    cells = {name: cell for name, cell in group[0].cells.items() if cell != first[0].cells[name]}
    return f"As with `{first[0].model}`, except:\n\n{_lists(cells)}"


def _lists(cells: Mapping[str, Cell]) -> str:
    """Return a line for each kind of cell; fields with the same means, or the same reason, stand together."""
    lines = []
    for support in Support:
        by_reason: dict[str, list[str]] = {}
        for name, cell in cells.items():
            if cell.support is support:
                by_reason.setdefault(cell.how, []).append(name)
        if by_reason:
            parts = [_named(names) + (f" ({how})" if how else "") for how, names in sorted(by_reason.items())]
            lines.append(f"- **{support}**: {'; '.join(parts)}")
    return "\n".join(lines)


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    texts = pages()
    for stale in FOLDER.glob("*.md"):
        if stale != INDEX and stale.name not in texts:
            stale.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    INDEX.write_text(index(INDEX.read_text(encoding="utf-8")), encoding="utf-8")
