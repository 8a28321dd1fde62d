"""The JSON Schema of a table, for editors and for `dragoman schema`. Never the checks themselves."""

import json
from collections.abc import Iterable
from typing import Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from config.schema import GatewayConfig
from config.types import REFERENCE_PATTERN

_INCLUDE: Final[JsonSchemaValue] = {
    "type": "array",
    "items": {"type": "string"},
    "default": [],
    "description": "Files whose vendors, models, routes and teams are added, as paths or globs relative to this file.",
}


class _TableSchema(GenerateJsonSchema):
    """Leaves out generated titles and empty or spelled-out defaults, and closes mappings whose keys follow a pattern.

    pydantic writes such a mapping as `patternProperties` alone, which lets any other key pass.
    """

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        result = super().dict_schema(schema)
        for pattern, values in result.pop("patternProperties", {}).items():
            names = result.pop("propertyNames", {})
            result |= {"propertyNames": {**names, "pattern": pattern}, "additionalProperties": values}
        return result

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        result = super().default_schema(schema)
        if result.get("default") is None or isinstance(result["default"], dict):
            result.pop("default", None)
        return result


def json_schema() -> JsonSchemaValue:
    """The schema as JSON values. A string with a reference passes wherever one may stand."""
    schema = GatewayConfig.model_json_schema(schema_generator=_TableSchema)
    properties = {"version": schema["properties"]["version"], "include": _INCLUDE, **schema["properties"]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Dragoman routing table"}
    return {**head, **schema, "title": head["title"], "properties": properties}


def with_profiles(schema: JsonSchemaValue, profiles: Iterable[str]) -> JsonSchemaValue:
    """The schema that names the profiles there are, for editors to complete; a reference may stand in their place."""
    vendor = schema["$defs"]["Vendor"]
    options = [{"enum": sorted(profiles)}, {"type": "string", "pattern": REFERENCE_PATTERN}, {"type": "null"}]
    profile = {**vendor["properties"]["profile"], "anyOf": options}
    named = {**vendor, "properties": {**vendor["properties"], "profile": profile}}
    return {**schema, "$defs": {**schema["$defs"], "Vendor": named}}


def schema_text(profiles: Iterable[str]) -> str:
    """The content of the committed `config/schema.json`."""
    return json.dumps(with_profiles(json_schema(), profiles), indent=2, ensure_ascii=False) + "\n"
