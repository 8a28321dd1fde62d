"""Models of LiteLLM's database, as entries of a `model_list`.

`/model/info` lists those of the configuration too, without their credentials, and with each model what LiteLLM's list
of prices says of it: a price and a window are taken from there, the rest is not the operator's.

Source: `model_info_v1` and `remove_sensitive_info_from_deployment` of litellm 1.108.7, November 2026.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from config.reading.yaml_tree import MapNode, ScalarNode
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.database_files import Database

_COMPUTED: Final = ("use_in_pass_through", "use_litellm_proxy", "merge_reasoning_content_in_choices", "use_xai_oauth")
"""Switches that LiteLLM lists for every model, at their defaults."""


def database_models(database: Database, configured: Sequence[ForeignSection]) -> Iterator[ForeignSection]:
    """Yield the entries of the database, and those of the configuration if that was given without its models."""
    names = {item.text("model_name") for item in configured}
    for row in database.models:
        info = row.section("model_info")
        is_of_database = info.flag("db_model")
        if is_of_database or row.text("model_name") not in names:
            yield _entry(row)


def _entry(row: ForeignSection) -> ForeignSection:
    """Return a row without what LiteLLM adds to the operator's settings, and without masked values."""
    entries = dict(row.node.entries)
    params = row.section("litellm_params")
    for name, each in params.node.entries.items():
        if is_masked(each.node):
            params.note(name, "is masked in this export: what the environment has is used, or write it")
    for key, keep in (("litellm_params", _is_set), ("model_info", _is_own)):
        entry = entries.get(key)
        if entry is not None and isinstance(entry.node, MapNode):
            kept = {name: each for name, each in entry.node.entries.items() if keep(name, each.node)}
            entries[key] = replace(entry, node=replace(entry.node, entries=kept))
    return ForeignSection(replace(row.node, entries=entries), row.path, row.remarks, [])


def _is_set(name: str, node: object) -> bool:
    if name in _COMPUTED and isinstance(node, ScalarNode) and node.text == "false":
        return False
    return not is_masked(node)


def is_masked(node: object) -> bool:
    """Return whether a value is LiteLLM's mask of one."""
    return isinstance(node, ScalarNode) and node.kind == "text" and "****" in node.text


_OWN: Final = frozenset(
    {"id", "base_model", "access_groups", "team_id", "team_public_model_name", "mode", "blocked", "tier"}
    | {"max_tokens", "max_input_tokens", "max_output_tokens", "input_cost_per_token", "output_cost_per_token"}
    | {"cache_read_input_token_cost", "cache_creation_input_token_cost"}
)


def _is_own(name: str, node: object) -> bool:
    return name in _OWN and not (isinstance(node, ScalarNode) and node.text in ("", "false"))
