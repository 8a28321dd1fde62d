"""Helpers that load a table in a test."""

from collections.abc import Mapping
from textwrap import dedent

from config.load_config import Loaded, load_text
from config.problem import ConfigError, Problem

NAME = "t.yaml"

BASE = """\
version: 1
vendors: {openai: {}, azure: {}, local: {}}
models:
  openai/gpt-4o: {}
  openai/gpt-4o-mini: {}
  azure/gpt-4o: {deployments: {eu: {}, us: {}}}
  local/*: {}
"""
"""Two vendors with models and one with any."""


def load(text: str, env: Mapping[str, str] | None = None) -> Loaded:
    """The table of an indented text."""
    return load_text(dedent(text), NAME, env or {})


def problems(text: str, env: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    """What is wrong with the table of an indented text; empty when nothing is."""
    try:
        load(text, env)
    except ConfigError as error:
        return error.problems
    return ()


def complaints(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """The same as `LINE:COL path: message`."""
    return [str(problem).removeprefix(f"{NAME}:") for problem in problems(text, env)]


def warnings(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """What the table warns of, in the same form."""
    return [str(problem).removeprefix(f"{NAME}:") for problem in load(text, env).warnings]
