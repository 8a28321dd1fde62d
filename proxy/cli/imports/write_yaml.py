"""Write the draft of a config file as YAML text, with its comments.

Reading the text back gives the same values, whatever they contain. A text is quoted unless YAML reads it as the same
text. `${` is escaped. Line breaks and control characters cannot break out of a comment or a quoted text.
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from config.problem import one_line
from config.reading.yaml_scalars import plain_kind
from proxy.cli.imports.table_draft import Block, DraftValue, Reference, Scalar, TableDraft

WIDTH: Final = 118
"""The maximum characters of a comment line, and of a list on one line."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*(:[A-Za-z0-9_./+-]+)*")


def table_text(draft: TableDraft) -> str:
    """Return the text of a config file. Sections without entries are omitted; their comments are kept."""
    root = Block(
        {
            key: value
            for key, value in draft.root.entries.items()
            if not isinstance(value, Block) or value.entries or value.comments
        },
        draft.root.comments,
    )
    return "".join(f"{line}\n" for line in _block_lines(root, 0))


def _block_lines(block: Block, depth: int) -> Iterator[str]:
    yield from _comment_lines(block.comments, depth)
    for key, value in block.entries.items():
        yield from _entry_lines(key, value, depth)


def _entry_lines(key: str, value: DraftValue, depth: int) -> Iterator[str]:
    head = f"{'  ' * depth}{_key_text(key)}:"
    if isinstance(value, Block) and (value.comments or (value.entries and not _is_short(value, len(head)))):
        if value.entries:
            yield head
            yield from _block_lines(value, depth + 1)
        else:
            yield from _comment_lines(value.comments, depth)
            yield f"{head} {{}}"
    elif isinstance(value, list) and not _is_short(value, len(head)):
        yield head
        for item in value:
            yield f"{'  ' * (depth + 1)}- {_flow_text(item)}"
    else:
        yield f"{head} {_flow_text(value)}"


def _comment_lines(comments: list[str], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for comment in comments:
        # Names such as claude-sonnet-4-5 are not split at hyphens.
        room = WIDTH - len(indent) - 4
        wrapped = textwrap.wrap(one_line(comment), room, break_long_words=False, break_on_hyphens=False)
        for index, line in enumerate(wrapped):
            yield f"{indent}# {'  ' if index else ''}{line}"


def _is_short(value: Block | list[DraftValue], before: int) -> bool:
    """Return whether a mapping or list fits into the line of its key: small, flat and without a comment."""
    inner = list(value.entries.values()) if isinstance(value, Block) else value
    if any(isinstance(each, Block | list) for each in inner) and not isinstance(value, list):
        return False
    if len(inner) > 8 or any(isinstance(each, Block) and (each.comments or len(inner) > 3) for each in inner):
        return False
    return before + len(_flow_text(value)) < WIDTH


def _flow_text(value: DraftValue) -> str:
    if isinstance(value, Block):
        return f"{{{', '.join(f'{_key_text(key)}: {_flow_text(each)}' for key, each in value.entries.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow_text, value))}]"
    return scalar_text(value)


def scalar_text(value: Scalar) -> str:
    """Return a scalar as YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, Reference):
        return _quoted(value.text)
    return _key_text(value.replace("${", "$${"))


def _key_text(text: str) -> str:
    """Return a key as YAML. Keys have no references."""
    return text if _PLAIN.fullmatch(text) and plain_kind(text) == "text" else _quoted(text)


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _decimal(value: float) -> str:
    """Format a number without an exponent, because YAML would read it as text."""
    return f"{value:.12f}".rstrip("0").rstrip(".") or "0"


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
