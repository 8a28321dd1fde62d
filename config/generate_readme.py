"""Generate the tables of keys in `config/README.md` from the models: `python -m config.generate_readme`."""

from pathlib import Path
from typing import Final

from pydantic.json_schema import JsonSchemaValue

from config.sections.limits_section import LimitsSection
from config.sections.price_section import RatesSection
from config.table.table_json_schema import json_schema
from config.table.table_schema import DeploymentSettings
from config.units import AS_WRITTEN

README: Final = Path(__file__).parent / "README.md"

BEGIN: Final = "<!-- keys: written by `python -m config.generate_readme` -->"
END: Final = "<!-- end of keys -->"

# The heading of each definition of the schema. The operator chooses the names in <>.
_SECTIONS: Final = {
    "": "The configuration",
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
"""Sections that have every key of another section, which are documented once: these keys, and where they are
documented."""


def reference(schema: JsonSchemaValue) -> str:
    """Return the tables of a schema's keys as Markdown, one for each section."""
    return "\n".join(_section(name, heading, schema) for name, heading in _SECTIONS.items())


def updated(readme: str) -> str:
    """Return the README with new tables between its marks. Raises ValueError if a mark is missing."""
    before, found_begin, rest = readme.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not (found_begin and found_end):
        raise ValueError("the README lacks a mark of the tables of keys")
    return f"{before}{BEGIN}\n{reference(json_schema())}\n{END}{after}"


def _section(name: str, heading: str, schema: JsonSchemaValue) -> str:
    section = schema["$defs"][name] if name else schema
    mapping = next((option for option in section.get("anyOf", ()) if "additionalProperties" in option), section)
    shared, where = _SHARED_KEYS.get(name, (frozenset(), ""))
    required = mapping.get("required", ())
    rows = [_row(key, value, key in required) for key, value in mapping["properties"].items() if key not in shared]
    note = f"\nAnd every key of {where}.\n" if shared else ""
    description = mapping["description"]
    return "\n".join(
        [f"\n### {heading}\n", description, note, "| key | value | default | |", "|---|---|---|---|", *rows]
    )


def _row(key: str, value: JsonSchemaValue, required: bool) -> str:
    cells = [f"`{key}`", _kind(value), "required" if required else _default(value), value.get("description", "")]
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


def _default(value: JsonSchemaValue) -> str:
    default = value.get("default")
    if default in (None, [], {}):
        return ""
    if (written := AS_WRITTEN.get(value.get("title", ""))) is not None and not isinstance(default, str):
        return f"`{written(default)}`"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
