"""The JSON Schema of the configuration, for editors and `dragoman schema`."""

import json
from collections.abc import Iterable
from typing import Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from config.sections.value_types import REFERENCE_PATTERN
from config.table.table_schema import GatewayConfig

_INCLUDE: Final[JsonSchemaValue] = {
    "type": "array",
    "items": {"type": "string"},
    "default": [],
    "description": "Files whose vendors, models, routes and teams are added, as paths or globs relative to this file.",
}


class _TableSchema(GenerateJsonSchema):
    """Omits generated titles and empty or nested defaults, and names definitions without `Section`.

    It also closes mappings whose keys follow a pattern: pydantic's `patternProperties` alone accept any other key.
    """

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name).removesuffix("Section")

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


def json_schema(table: type[GatewayConfig] = GatewayConfig) -> JsonSchemaValue:
    """Return the schema as JSON values. It accepts a string with a reference in every field that may have one."""
    schema = table.model_json_schema(schema_generator=_TableSchema)
    properties = {"version": schema["properties"]["version"], "include": _INCLUDE, **schema["properties"]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Dragoman configuration"}
    return {**head, **schema, "title": head["title"], "properties": properties}


def with_profiles(schema: JsonSchemaValue, profiles: Iterable[str]) -> JsonSchemaValue:
    """Return the schema with the names of the profiles, which editors complete. A reference is accepted too."""
    vendor = schema["$defs"]["Vendor"]
    options = [{"enum": sorted(profiles)}, {"type": "string", "pattern": REFERENCE_PATTERN}, {"type": "null"}]
    profile = {**vendor["properties"]["profile"], "anyOf": options}
    named = {**vendor, "properties": {**vendor["properties"], "profile": profile}}
    return {**schema, "$defs": {**schema["$defs"], "Vendor": named}}


def schema_text(profiles: Iterable[str]) -> str:
    """Return the text of `config/schema.json`."""
    return json.dumps(with_profiles(json_schema(), profiles), indent=2, ensure_ascii=False) + "\n"
