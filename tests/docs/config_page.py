"""The lists of keys in `docs/reference/configuration.md`, by the models: `python -m tests.docs.config_page`."""

import re
from collections.abc import Iterator
from typing import Final

from pydantic.json_schema import JsonSchemaValue

from config.sections.limits_section import LimitsSection
from config.sections.price_section import RatesSection
from config.sections.section import Section, settings_of
from config.table.table_json_schema import json_schema
from config.table.table_schema import DeploymentSettings
from config.units import AS_WRITTEN
from tests.docs.default_meanings import DEFAULT_MEANINGS
from tests.docs.marked_pages import DOCS, replaced

PAGE: Final = DOCS / "reference" / "configuration.md"

BEGIN: Final = "<!-- keys: written by `python -m tests.docs.config_page` -->"
END: Final = "<!-- end of keys -->"

# The heading of each definition of the schema. The operator chooses the names in <>.
_SECTIONS: Final = {
    "": "The config file",
    "Server": "`server`",
    "Tls": "`server.tls`",
    "Cors": "`server.cors`",
    "Admin": "`server.admin`",
    "ServerLimits": "`server.limits`",
    "KeepResponses": "`server.keep_responses`",
    "Shared": "`server.shared`",
    "Ledger": "`server.ledger`",
    "Log": "`server.log`",
    "PayloadLog": "`server.payload_log`",
    "Tracing": "`server.tracing`",
    "SurfaceSettings": "`server.surfaces.<surface>`",
    "DeploymentSettings": "`defaults`, and every vendor, model and deployment",
    "Timeouts": "`timeouts`",
    "Retries": "`retries`",
    "RetryBudget": "`retries.budget`",
    "CircuitBreaker": "`circuit_breaker`",
    "Media": "`media`",
    "Cache": "`cache`",
    "Affinity": "`affinity`",
    "Hedge": "`hedge`",
    "Price": "`price`",
    "LongContext": "An element of `long_context` of a price",
    "Tier": "`price.service_tiers.<tier>`",
    "Limits": "`limits` of all clients, vendors, models, deployments and keys",
    "Credentials": "`credentials`",
    "AwsCredentials": "`credentials.aws`",
    "GoogleCredentials": "`credentials.google`",
    "EntraCredentials": "`credentials.entra`",
    "OidcCredentials": "`credentials.oidc`",
    "Vendor": "`vendors.<vendor>`",
    "Model": "`models.<vendor/model>`",
    "Deployment": "`models.<vendor/model>.deployments.<deployment>`",
    "Route": "`routes.<name>`, `teams.<team>.routes.<name>`",
    "Fallbacks": "`fallbacks` of a route",
    "RouteTarget": "An element of `targets`",
    "Team": "`teams.<team>`",
    "TeamKey": "An element of `keys`, and of the file `keys_from`",
    "TeamLimits": "`teams.<team>.limits`",
    "Budget": "`budget` of all clients, teams and keys, or an element of it",
    "EachUser": "`each_user`, `teams.<team>.each_user`",
    "UserBudget": "`budget` of each user, or an element of it",
    "TargetBudget": "`budget` of vendors, models and deployments, or an element of it",
    "BudgetRoute": "`then` of a budget",
    "OnLimitQueue": "`teams.<team>.on_limit`",
    "Plugin": "`plugins.<plugin>`",
}
_DEPLOYMENT_KEYS: Final = (frozenset(DeploymentSettings.model_fields), "`defaults`")
_SHARED_KEYS: Final = {
    "Vendor": _DEPLOYMENT_KEYS,
    "Model": _DEPLOYMENT_KEYS,
    "Deployment": _DEPLOYMENT_KEYS,
    "LongContext": (frozenset(RatesSection.model_fields), "`price`, `long_context` and `service_tiers` excluded"),
    "Tier": (frozenset(RatesSection.model_fields), "`price`, `service_tiers` excluded"),
    "TeamLimits": (frozenset(LimitsSection.model_fields), "`limits` above"),
}
"""Sections with every key of another section, which are listed once: these keys, and the other section."""


_BUILT_IN: Final = re.compile(r" ?Built in: (.+?)\.(?= |$)")
"""The sentence of a description that names the built-in value; it is moved into the column of defaults."""

_UNWRITTEN: Final = re.compile(r" ?None written: .+?\.(?= |$)")
"""The sentence that repeats the column of defaults."""


def reference(schema: JsonSchemaValue) -> str:
    """Return the keys of a schema as Markdown, section by section."""
    return "\n".join(_section(name, heading, schema) for name, heading in _SECTIONS.items())


def updated(page: str) -> str:
    """Return the page with the current keys between its marks. Raises ValueError if a mark is missing."""
    return replaced(page, BEGIN, reference(json_schema()), END)


def section_classes() -> dict[str, type[Section]]:
    """Return the class of each section of the configuration by its name in the schema."""
    ours = [each for each in _below(Section) if each.__module__.startswith("config.")]
    return {each.__name__.removesuffix("Section"): each for each in ours}


def _below(section: type[Section]) -> Iterator[type[Section]]:
    for each in section.__subclasses__():
        yield each
        yield from _below(each)


def _section(name: str, heading: str, schema: JsonSchemaValue) -> str:
    section = schema["$defs"][name] if name else schema
    mapping = next((option for option in section.get("anyOf", ()) if "additionalProperties" in option), section)
    shared, where = _SHARED_KEYS.get(name, (frozenset(), ""))
    required = mapping.get("required", ())
    own = {key: value for key, value in mapping["properties"].items() if key not in shared}
    rows = [_row(name, key, value, key in required) for key, value in own.items()]
    note = f"\nAnd every key of {where}.\n" if shared else ""
    description = mapping["description"]
    return "\n".join(
        [f"\n### {heading}\n", description, note, "| key | value | default | |", "|---|---|---|---|", *rows]
    )


def _row(section: str, key: str, value: JsonSchemaValue, required: bool) -> str:
    description = _BUILT_IN.sub("", value.get("description", "")).strip()
    default = "required" if required else _default(section, key, value)
    if default.startswith("none"):
        description = _UNWRITTEN.sub("", description).strip()
    cells = [f"`{key}`", _kind(value), default, description]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind(value: JsonSchemaValue) -> str:
    if "title" in value:
        return str(value["title"])
    if value.get("format") == "password":
        return "secret"
    options = [option for option in value.get("anyOf", ()) if option.get("type") != "null"]
    if options:
        return _kind(options[0])
    if "enum" in value:
        return " or ".join(f"`{option}`" for option in value["enum"])
    words = {"string": "text", "integer": "number", "number": "number", "boolean": "`true` or `false`", "array": "list"}
    return f"`{value['const']}`" if "const" in value else words.get(value.get("type", ""), "mapping")


def _default(section: str, key: str, value: JsonSchemaValue) -> str:
    """Return the built-in value of the key, or the meaning of its absence; empty if unknown."""
    default = value.get("default")
    if default not in (None, [], {}):
        return _as_written(default, value)
    known = section_classes().get(section or "GatewayConfig")
    if said := _BUILT_IN.search(value.get("description", "")):
        declared = None if known is None or key not in settings_of(known) else settings_of(known)[key].built_in
        return f"`{said[1]}`" if declared is not None and " " not in said[1] else said[1]
    if known is not None and key in known.model_fields and isinstance(known.model_fields[key].default, Section):
        return "the defaults of its keys"
    return DEFAULT_MEANINGS.get(f"{section}.{key}") or _by_section(section, key)


def _by_section(section: str, key: str) -> str:
    if section in ("Limits", "TeamLimits"):
        return DEFAULT_MEANINGS[".limits"]
    return DEFAULT_MEANINGS.get(f".{key}", "")


def _as_written(default: object, value: JsonSchemaValue) -> str:
    written = AS_WRITTEN.get(value.get("title", ""))
    if written is not None and isinstance(default, int | float):
        return f"`{written(default)}`"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
