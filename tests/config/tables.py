"""Helpers that load a configuration in a test."""

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
"""Two vendors with listed models, and one that accepts any model."""


def load(text: str, env: Mapping[str, str] | None = None) -> Loaded:
    """Return the configuration of an indented text."""
    return load_text(dedent(text), NAME, env or {})


def problems(text: str, env: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    """Return the problems of the configuration in an indented text."""
    try:
        load(text, env)
    except ConfigError as error:
        return error.problems
    return ()


def complaints(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the problems as `LINE:COL path: message`."""
    return [str(problem).removeprefix(f"{NAME}:") for problem in problems(text, env)]


def warnings(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the warnings as `LINE:COL path: message`."""
    return [str(problem).removeprefix(f"{NAME}:") for problem in load(text, env).warnings]
