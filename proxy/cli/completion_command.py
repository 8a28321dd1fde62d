"""`dragoman completion`: print a script for a shell that completes dragoman's commands, options and values.

The scripts are generated from the parser of the arguments, so that they are always complete. Each script finds the
command before the cursor and offers its subcommands, options and values.

Sources: the manuals of bash 5.2 ("Programmable Completion"), zsh 5.9 ("Completion System") and fish 3.6 ("complete").
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from proxy.cli.command_parser import Argument, CommandTree

Place = tuple[str, CommandTree]
"""A command's path and the command. A path is for example `/key/new`; it is empty for dragoman itself."""


def completion(tree: CommandTree, shell: str) -> int:
    """Print the script for a shell."""
    sys.stdout.write("".join(f"{line}\n" for line in SCRIPTS[shell](tree)))
    return 0


def places(tree: CommandTree, path: str = "") -> Iterator[Place]:
    """Yield a command and all its subcommands, each with its path."""
    yield path, tree
    for name, inner in tree.commands.items():
        yield from places(inner, f"{path}/{name}")


def bash_lines(tree: CommandTree) -> Iterator[str]:
    """Yield the script for bash."""
    yield "# Completion of dragoman for bash: source <(dragoman completion bash)"
    yield "_dragoman() {"
    yield '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" place="" word index'
    yield "    COMPREPLY=()"
    yield "    # Bash takes the = of --option=value for a word."
    yield '    if [[ $current == "=" ]]; then current=""'
    yield '    elif [[ $previous == "=" ]]; then previous="${COMP_WORDS[COMP_CWORD-2]}"; fi'
    yield "    for ((index = 1; index < COMP_CWORD; index++)); do"
    yield '        word="${COMP_WORDS[index]}"'
    yield f'        case "$place/$word" in {"|".join(_paths(tree))}) place="$place/$word" ;; esac'
    yield "    done"
    yield "    local IFS=$'\\n' offered=''"
    yield '    case "$place $previous" in'
    for path, option in _valued(tree):
        patterns = "|".join(f'"{path} {name}"' for name in option.names)
        yield f"        {patterns}) {_bash_value(option)}return ;;"
    yield "    esac"
    yield '    if [[ $current == -* ]]; then case "$place" in'
    for path, command in places(tree):
        yield f'        "{path}") offered={_newlines(name for option in command.options for name in option.names)} ;;'
    yield '    esac; else case "$place" in'
    for path, command in places(tree):
        if command.takes_files:
            yield f'        "{path}") {_BASH_FILES}return ;;'
        yield f'        "{path}") offered={_newlines((*command.commands, *_words(command)))} ;;'
    yield "    esac; fi"
    yield '    COMPREPLY=($(compgen -W "$offered" -- "$current"))'
    yield "}"
    yield "complete -F _dragoman dragoman"


_BASH_FILES: Final = 'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")); '


def _bash_value(option: Argument) -> str:
    if option.is_file:
        return _BASH_FILES
    return f'COMPREPLY=($(compgen -W {_newlines(option.choices)} -- "$current")); ' if option.choices else ""


def zsh_lines(tree: CommandTree) -> Iterator[str]:
    """Yield the script for zsh."""
    yield "#compdef dragoman"
    yield "# Completion of dragoman for zsh: source <(dragoman completion zsh), or as _dragoman in a folder of fpath"
    yield "_dragoman() {"
    yield '    local current="${words[CURRENT]}" previous="${words[CURRENT-1]}" place="" word index'
    yield "    local -a offered"
    yield '    [[  "$current" == --*=* ]] && { previous="${current%%=*}"; current="${current#*=}"; compset -P "*="; }'
    yield "    for ((index = 2; index < CURRENT; index++)); do"
    yield '        word="${words[index]}"'
    yield f'        case "$place/$word" in ({"|".join(_paths(tree))}) place="$place/$word" ;; esac'
    yield "    done"
    yield '    case "$place $previous" in'
    for path, option in _valued(tree):
        patterns = "|".join(f'"{path} {name}"' for name in option.names)
        action = "_files; " if option.is_file else f"compadd -- {' '.join(option.choices)}; " if option.choices else ""
        yield f"        ({patterns}) {action}return ;;"
    yield "    esac"
    yield '    if [[ "$current" == -* ]]; then case "$place" in'
    for path, command in places(tree):
        options = {name: option.summary for option in command.options for name in option.names}
        yield f'        ("{path}") offered=({_described(options)}); _describe -o option offered ;;'
    yield '    esac; else case "$place" in'
    for path, command in places(tree):
        commands = {name: inner.summary for name, inner in command.commands.items()} | dict.fromkeys(
            _words(command), ""
        )
        if command.takes_files:
            yield f'        ("{path}") _files ;;'
        elif commands:
            yield f'        ("{path}") offered=({_described(commands)}); _describe command offered ;;'
    yield "    esac; fi"
    yield "}"
    yield 'if [ "$funcstack[1]" = _dragoman ]; then _dragoman "$@"; else compdef _dragoman dragoman; fi'


def fish_lines(tree: CommandTree) -> Iterator[str]:
    """Yield the script for fish."""
    yield "# Completion of dragoman for fish: dragoman completion fish | source"
    yield "function __dragoman_at"
    yield "    set -l place ''"
    yield "    set -l tokens (commandline -opc)"
    yield "    set -e tokens[1]"
    yield "    for word in $tokens"
    yield '        switch "$place/$word"'
    yield f"            case {' '.join(_paths(tree))}"
    yield '                set place "$place/$word"'
    yield "        end"
    yield "    end"
    yield '    test "$place" = "$argv[1]"'
    yield "end"
    yield "complete -c dragoman -f"
    for path, command in places(tree):
        at = f"complete -c dragoman -n {_fish_quoted(f'__dragoman_at {path or _EMPTY}')}"
        for name, inner in command.commands.items():
            yield f"{at} -a {name} -d {_fish_quoted(inner.summary)}"
        for word in _words(command):
            yield f"{at} -a {word}"
        for option in command.options:
            yield f"{at} {_fish_option(option)} -d {_fish_quoted(option.summary)}"
        if command.takes_files:
            yield f"{at} -F"


_EMPTY: Final = '""'


def _fish_option(option: Argument) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = "-r -F" if option.is_file else "-x" if option.takes_value else ""
    choices = f"-a {_fish_quoted(' '.join(option.choices))}" if option.choices else ""
    return " ".join(filter(None, [*names, value, choices]))


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _paths(tree: CommandTree) -> list[str]:
    return [path for path, _ in places(tree) if path]


def _valued(tree: CommandTree) -> Iterator[tuple[str, Argument]]:
    """Yield every option that has a value, with the path of its command."""
    for path, command in places(tree):
        yield from ((path, option) for option in command.options if option.takes_value)


def _words(command: CommandTree) -> list[str]:
    """Return the allowed values of a command's positional arguments."""
    return [choice for argument in command.arguments if not argument.names for choice in argument.choices]


def _newlines(words: "Iterator[str] | tuple[str, ...]") -> str:
    return f"$'{chr(92) + 'n'}'".join(words) or "''"


def _described(entries: Mapping[str, str]) -> str:
    """Return entries for zsh's `_describe`, each as `name:description` in quotation marks."""
    return " ".join(f"'{name}:{_zsh_text(summary)}'" for name, summary in entries.items())


def _zsh_text(summary: str) -> str:
    return summary.replace("\\", "\\\\").replace(":", "\\:").replace("'", "'\\''")


SCRIPTS: Final[Mapping[str, Callable[[CommandTree], Iterator[str]]]] = {
    "bash": bash_lines,
    "zsh": zsh_lines,
    "fish": fish_lines,
}
"""Script generators by the name of the shell."""
