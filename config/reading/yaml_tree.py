"""Parse YAML text into a tree of nodes with positions. Reject duplicate keys, ambiguous numbers, tags and alias bombs.

The tree is built from parser events instead of by PyYAML's composer. Events come one at a time, so depth and size are
limited before they take time or memory: libyaml's scanner is quadratic in flow depth, and 200,000 opening brackets took
57 s. Nothing here recurses.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from config.problem import Path, Position, Problem
from config.reading.yaml_scalars import OTHER_NOTATION, Kind, plain_kind, tagged_kind, why_odd
from config.reading.yaml_syntax_errors import LINE_BREAK, Mark, syntax_fault

MAX_DEPTH: Final = 40
MAX_NODES: Final = 400_000
"""The most nodes of one file with aliases expanded. Ten thousand deployments need about a quarter of MAX_NODES, ten
thousand teams with limits and budgets half."""

_LOADER: Final[type[yaml.SafeLoader | yaml.CSafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE: Final = re.compile("[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_PLAIN_TAGS: Final = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A scalar: its text as written, the kind that YAML reads it as, and whether it is plain (unquoted)."""

    at: Position
    text: str
    kind: Kind
    plain: bool
    size: int = 1
    height: int = 0


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list and its position. `size` counts the nodes with aliases expanded. `height` counts the levels, including
    this one."""

    at: Position
    items: tuple["Node", ...]
    size: int
    height: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping and its position. Entries merged by `<<` keep the positions at which they are written."""

    at: Position
    entries: dict[str, "Entry"]
    size: int
    height: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A value under a key, and the position of the key."""

    key_at: Position
    node: "Node"


Node = ScalarNode | ListNode | MapNode


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of one file. `root` is `None` if the text is empty, or if it is not YAML; then there are problems.
    `keys` are the keys of the outermost mapping, as far as the text could be read."""

    root: Node | None
    problems: tuple[Problem, ...]
    keys: frozenset[str] = frozenset()


def parse(text: str, file: str) -> Parsed:
    """Parse one YAML document. `file` is the file name in its positions. Problems are returned, not raised."""
    unprintable = _UNPRINTABLE.search(text.removeprefix("\ufeff"))
    if unprintable:
        line, column = _line_and_column(text.removeprefix("\ufeff"), unprintable.start())
        at = Position(file, line, column)
        return Parsed(None, (Problem.at(at, (), f"the character U+{ord(unprintable[0]):04X} is not allowed in YAML"),))
    builder = _Builder(file)
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        builder.problems.append(_syntax_problem(error, file, text))
        return Parsed(None, tuple(builder.problems), builder.keys())
    except _Stop as stop:
        builder.problems.append(stop.problem)
        return Parsed(None, tuple(builder.problems), builder.keys())
    return Parsed(builder.root, tuple(builder.problems), builder.keys())


def find(root: Node, path: Path) -> tuple[Node, Position, int]:
    """Return the deepest node on the path, the position of its key, and the number of steps of the path that lead to
    it."""
    node, key_at = root, root.at
    for depth, step in enumerate(path):
        if isinstance(node, MapNode) and step in node.entries:
            entry = node.entries[str(step)]
            node, key_at = entry.node, entry.key_at
        elif isinstance(node, ListNode) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            key_at = node.at
        else:
            return node, key_at, depth
    return node, key_at, len(path)


def value_position(root: Node, path: Path) -> Position:
    """Return the position of a value. If the value is missing, return the position of the key of the section that lacks
    it."""
    node, key_at, depth = find(root, path)
    if depth == len(path) or (isinstance(node, ScalarNode) and node.kind != "null"):
        return node.at
    return key_at


def key_position(root: Node, path: Path) -> Position:
    """Return the position of the path's last key."""
    return find(root, path)[1]


def _events(text: str) -> Iterator[Event]:
    loader = _LOADER(text)
    try:
        while (event := loader.get_event()) is not None:
            yield event
    finally:
        loader.dispose()


def _position(file: str, mark: Mark | None) -> Position:
    # Both parsers mark every event, although PyYAML's annotations allow `None`.
    return Position(file, mark.line + 1, mark.column + 1) if mark else Position(file, 1, 1)


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    before = LINE_BREAK.split(text[:offset])
    return len(before), len(before[-1]) + 1


def _syntax_problem(error: yaml.MarkedYAMLError, file: str, text: str) -> Problem:
    at = _position(file, error.problem_mark or error.context_mark)
    (line, column), message = syntax_fault(error, (at.line, at.column), text)
    return Problem.at(Position(file, line, column), (), message)


class _Stop(Exception):
    """Ends the parsing of a file if parsing further would give wrong results or cost too much."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Frame(Protocol):
    """A list or mapping whose end event has not come yet."""

    anchor: str | None
    size: int

    def place(self, node: Node, at: Position) -> None: ...
    def step(self) -> str | int | None: ...
    def finish(self) -> Node: ...


@dataclass(slots=True)
class _ListFrame:
    builder: "_Builder"
    at: Position
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    size: int = 1

    def place(self, node: Node, at: Position) -> None:
        self.items.append(node)

    def step(self) -> int:
        return len(self.items)

    def finish(self) -> Node:
        return ListNode(self.at, tuple(self.items), self.size, 1 + max((n.height for n in self.items), default=0))


@dataclass(slots=True)
class _MapFrame:
    builder: "_Builder"
    at: Position
    anchor: str | None
    entries: dict[str, Entry] = field(default_factory=dict)
    merge: Entry | None = None
    key: str | None = None
    key_at: Position | None = None
    size: int = 1

    def place(self, node: Node, at: Position) -> None:
        if self.key_at is None:
            self.key_at, self.key = at, self._key_text(node, at)
            return
        entry, key = Entry(self.key_at, node), self.key
        self.key = self.key_at = None
        earlier = self.merge if key is None else self.entries.get(key)
        if earlier is not None:
            self.builder.report(entry.key_at, f"key written twice; first at {earlier.key_at}", key or "<<")
        elif key is None:
            self.merge = entry
        else:
            self.entries[key] = entry

    def step(self) -> str | None:
        return self.key

    def finish(self) -> Node:
        if self.merge is not None:
            self._add_merged(self.merge)
        height = 1 + max((entry.node.height for entry in self.entries.values()), default=0)
        return MapNode(self.at, self.entries, self.size, height)

    def _key_text(self, node: Node, at: Position) -> str | None:
        """Return the key; `None` for the merge key `<<`."""
        if not isinstance(node, ScalarNode):
            self.builder.report(at, "a key must be text, not a list or a mapping")
            return ""
        if node.plain and node.text == "<<":
            return None
        if node.kind not in ("text", "odd"):
            self.builder.report(
                at, f"a key must be text; YAML reads this one as {_KIND_IN_WORDS[node.kind]}: put it in quotes"
            )
        return node.text

    def _add_merged(self, merge: Entry) -> None:
        sources = merge.node.items if isinstance(merge.node, ListNode) else (merge.node,)
        for source in sources:
            if not isinstance(source, MapNode):
                self.builder.report(merge.key_at, "<< merges mappings; this value is not a mapping", "<<")
                continue
            for key, entry in source.entries.items():
                self.entries.setdefault(key, entry)


_KIND_IN_WORDS: Final[dict[Kind, str]] = {
    "null": "nothing",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "odd": OTHER_NOTATION,
    "text": "text",
}


class _Builder:
    """Builds nodes from events, with a stack of the open collections."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, Node | None] = {}
        self._documents = 0

    def take(self, event: Event) -> None:
        if isinstance(event, ScalarEvent):
            self._place(self._scalar(event), event)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            self._open(event)
        elif isinstance(event, CollectionEndEvent):
            self._close(event)
        elif isinstance(event, AliasEvent):
            self._place(self._alias(event), event)
        elif isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _Stop(
                    Problem.at(
                        self._at(event), (), "a second document (---) starts here; a configuration is one document"
                    )
                )

    def keys(self) -> frozenset[str]:
        """Return the keys of the outermost mapping that have been read so far; empty if the text is no mapping."""
        outermost = self._frames[0] if self._frames else None
        if isinstance(outermost, _MapFrame):
            return frozenset({*outermost.entries, *([] if outermost.key is None else [outermost.key])})
        return frozenset(self.root.entries) if isinstance(self.root, MapNode) else frozenset()

    def report(self, at: Position, message: str, *last: str) -> None:
        self.problems.append(Problem.at(at, (*self._path(), *last), message))

    def _path(self) -> Path:
        return tuple(step for step in (frame.step() for frame in self._frames) if step is not None)

    def _at(self, event: Event) -> Position:
        return _position(self.file, event.start_mark)

    def _scalar(self, event: ScalarEvent) -> ScalarNode:
        at = self._at(event)
        plain = event.implicit[0] and not event.style
        kind: Kind | None = "text"
        if plain:
            kind = plain_kind(event.value)
        elif event.tag not in (None, "!"):
            kind = tagged_kind(event.tag, event.value)
        if kind is None:
            self.report(at, "an unknown YAML tag")
        elif kind == "odd":
            self.report(at, why_odd(event.value))
        node = ScalarNode(at, event.value, kind or "text", plain)
        self._remember(event.anchor, node)
        return node

    def _alias(self, event: AliasEvent) -> Node:
        at = self._at(event)
        if event.anchor not in self._anchors:
            raise _Stop(Problem.at(at, self._path(), "this alias (*) names no anchor (&) written before it"))
        node = self._anchors[event.anchor]
        if node is None:
            raise _Stop(Problem.at(at, self._path(), "this alias (*) stands inside its own anchor (&)"))
        return node

    def _open(self, event: MappingStartEvent | SequenceStartEvent) -> None:
        at = self._at(event)
        if event.tag not in (None, "!", *_PLAIN_TAGS):
            self.report(at, "an unknown YAML tag")
        self._check_depth(at, 1)
        self._remember(event.anchor, None)
        kind = _MapFrame if isinstance(event, MappingStartEvent) else _ListFrame
        self._frames.append(kind(self, at, event.anchor))

    def _close(self, event: CollectionEndEvent) -> None:
        frame = self._frames.pop()
        node = frame.finish()
        self._remember(frame.anchor, node)
        self._place(node, event)

    def _remember(self, anchor: str | None, node: Node | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _place(self, node: Node, event: NodeEvent | CollectionEndEvent) -> None:
        at = self._at(event) if isinstance(event, AliasEvent) else node.at
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        self._check_depth(at, node.height)
        frame.size += node.size
        if frame.size > MAX_NODES:
            raise _Stop(Problem.at(at, self._path(), f"more than {MAX_NODES} values, with every alias written out"))
        frame.place(node, at)

    def _check_depth(self, at: Position, height: int) -> None:
        if len(self._frames) + height > MAX_DEPTH:
            raise _Stop(Problem.at(at, self._path(), f"nested deeper than {MAX_DEPTH} levels"))
