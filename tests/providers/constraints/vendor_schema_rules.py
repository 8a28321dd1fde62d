"""The JSON Schema rules of vendors' pages and error messages, for tests.

They are written from these sources, and not from the tables in `providers.constraints.schema_rules`. Each check returns
the violations that the vendor would refuse. Sources: OpenAI and Azure "Structured outputs", Anthropic "Structured
outputs", the texts of refusals in public issue threads, Gemini's `GenerationConfig` page, Cohere "Structured outputs";
read in November 2026.
"""

from collections.abc import Callable, Iterator

from providers.json_types import JsonObject, JsonValue

Check = Callable[[JsonObject], list[str]]

_HOLDERS = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def everywhere(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield every schema in a schema."""
    rest: list[JsonValue] = [schema]
    while rest:
        node = rest.pop()
        if not isinstance(node, dict):
            continue
        yield node
        for word in _HOLDERS:
            held = node.get(word)
            rest.extend(held.values() if isinstance(held, dict) else ())
        for word in _LISTS:
            listed = node.get(word)
            rest.extend(listed if isinstance(listed, list) else ())
        rest.extend(node[word] for word in _SINGLE if word in node)


def _words(schema: JsonObject, refused: str) -> list[str]:
    return [f"{word} is not permitted" for node in everywhere(schema) for word in refused.split() if word in node]


def _closed(schema: JsonObject) -> list[str]:
    return [
        "additionalProperties is required to be supplied and to be false"
        for node in everywhere(schema)
        if _is_object(node) and node.get("additionalProperties") is not False
    ]


def _is_object(node: JsonObject) -> bool:
    types = node.get("type")
    return "properties" in node or types == "object" or (isinstance(types, list) and "object" in types)


def _all_required(schema: JsonObject) -> list[str]:
    problems = []
    for node in everywhere(schema):
        named, required = node.get("properties"), node.get("required", [])
        if isinstance(named, dict) and (not isinstance(required, list) or set(map(str, required)) != set(named)):
            problems.append("required is required to include every key in properties")
    return problems


def _root(schema: JsonObject) -> list[str]:
    return [] if schema.get("type") == "object" and "anyOf" not in schema else ["the root must be an object"]


def _typed(schema: JsonObject) -> list[str]:
    known = {"type", "anyOf", "$ref", "enum", "const", "allOf"}
    untyped = [node for node in everywhere(schema) if node.keys().isdisjoint(known)]
    arrays = [node for node in everywhere(schema) if node.get("type") == "array" and "items" not in node]
    return ["schema must have a 'type' key" for _ in untyped] + ["array schema missing items" for _ in arrays]


def _references(schema: JsonObject) -> list[str]:
    problems = []
    defs = schema.get("$defs")
    names = set(defs) if isinstance(defs, dict) else set()
    for node in everywhere(schema):
        reference = node.get("$ref")
        if reference is None:
            continue
        if set(node) - {"$ref", "$defs"}:
            problems.append("$ref cannot have keywords beside it")
        if reference != "#" and str(reference).removeprefix("#/$defs/") not in names:
            problems.append(f"{reference} cannot be resolved")
    return problems


def _recursive(schema: JsonObject) -> list[str]:
    """Return a problem if a definition reaches itself by the names in `$ref`."""
    defs = schema.get("$defs")
    reached: dict[str, set[str]] = {"#": _names_in(schema, skip=True)}
    for name, node in defs.items() if isinstance(defs, dict) else ():
        reached[f"#/$defs/{name}"] = _names_in(node) if isinstance(node, dict) else set()
    for start in reached:
        found, rest = set[str](), [*reached[start]]
        while rest:
            name = rest.pop()
            if name not in found:
                found.add(name)
                rest.extend(reached.get(name, ()))
        if start in found:
            return ["Recursive definitions are not supported"]
    return []


def _names_in(schema: JsonObject, *, skip: bool = False) -> set[str]:
    own = {word: value for word, value in schema.items() if not (skip and word == "$defs")}
    return {str(node["$ref"]) for node in everywhere(own) if "$ref" in node}


_NEVER = (
    "oneOf allOf not if then else dependentRequired dependentSchemas patternProperties propertyNames minProperties "
    "maxProperties uniqueItems contains minContains maxContains prefixItems unevaluatedProperties default discriminator"
)


def openai(schema: JsonObject) -> list[str]:
    """Check the rules of OpenAI's strict mode."""
    shape = [*_root(schema), *_closed(schema), *_all_required(schema), *_typed(schema), *_references(schema)]
    formats = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
    unknown = [str(node["format"]) for node in everywhere(schema) if "format" in node and node["format"] not in formats]
    return [*shape, *_words(schema, _NEVER), *unknown]


def azure(schema: JsonObject) -> list[str]:
    """Check the rules of Azure's strict mode: OpenAI's rules of 2024, without any bound."""
    bounds = "minLength maxLength pattern format minimum maximum multipleOf minItems maxItems"
    return [*openai(schema), *_words(schema, f"{bounds} exclusiveMinimum exclusiveMaximum")]


def claude(schema: JsonObject) -> list[str]:
    """Check the rules of Claude's grammars, on Anthropic's API, Vertex and Bedrock."""
    refused = _NEVER.replace(" allOf", "").replace(" default", "")
    bounds = "minLength maxLength minimum maximum multipleOf maxItems exclusiveMinimum exclusiveMaximum"
    problems = [*_root(schema), *_closed(schema), *_typed(schema), *_recursive(schema), *_references(schema)]
    problems += _words(schema, f"{refused} {bounds}")
    optional = unions = 0
    for node in everywhere(schema):
        if node.get("minItems", 0) not in (0, 1):
            problems.append("minItems may only be 0 or 1")
        named, required = node.get("properties"), node.get("required", [])
        for name, member in named.items() if isinstance(named, dict) else ():
            optional += not isinstance(required, list) or name not in required
            unions += isinstance(member, dict) and ("anyOf" in member or isinstance(member.get("type"), list))
        values = node.get("enum", [])
        if isinstance(values, list) and any(isinstance(value, dict | list) for value in values):
            problems.append("enum values must be primitives")
    if optional > 24:
        problems.append("too many optional parameters")
    if unions > 16:
        problems.append("too many parameters with union types")
    return problems


def claude_on_bedrock(schema: JsonObject) -> list[str]:
    """Check the rules of Claude's grammars behind Bedrock, which knows fewer annotations."""
    return [*claude(schema), *_words(schema, "title examples $schema discriminator")]


def gemini(schema: JsonObject) -> list[str]:
    """Check the rules of Gemini's `responseJsonSchema`, which ignores unknown keywords."""
    ignored = (
        "not if then else contains uniqueItems multipleOf pattern minLength maxLength patternProperties propertyNames "
        "minProperties maxProperties exclusiveMinimum exclusiveMaximum const allOf oneOf default definitions "
        "discriminator"
    )
    enums = [value for node in everywhere(schema) for value in _listed(node) if not _plain(value)]
    return [*_words(schema, ignored), *_references(schema), *[f"enum of {value!r}" for value in enums]]


def _listed(node: JsonObject) -> list[JsonValue]:
    values = node.get("enum", [])
    return values if isinstance(values, list) else []


def _plain(value: JsonValue) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def cohere(schema: JsonObject) -> list[str]:
    """Check the rules of Cohere's JSON mode with a schema."""
    refused = (
        "allOf oneOf not if then else minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength "
        "minItems maxItems uniqueItems contains prefixItems patternProperties propertyNames minProperties maxProperties"
    )
    problems = [*_words(schema, refused), *([] if schema.get("type") == "object" else ["the root must be an object"])]
    for node in everywhere(schema):
        if node.get("properties") and not node.get("required"):
            problems.append("an object must require a property")
        if any(sign in str(node.get("pattern", "")) for sign in "^$"):
            problems.append("anchors are not supported")
        if node.get("format", "date") not in ("date-time", "uuid", "date", "time"):
            problems.append("the format is not supported")
    return problems


def vllm(schema: JsonObject) -> list[str]:
    """Check for keywords that neither of vLLM's backends enforces."""
    return _words(schema, "uniqueItems contains patternProperties propertyNames not if then else dependentRequired")


def llamacpp(schema: JsonObject) -> list[str]:
    """Check for keywords that llama.cpp's converter ignores or refuses with an error."""
    anchors = [
        pattern
        for node in everywhere(schema)
        if isinstance(pattern := node.get("pattern"), str) and not (pattern.startswith("^") and pattern.endswith("$"))
    ]
    return [*_words(schema, "uniqueItems contains patternProperties propertyNames not if multipleOf"), *anchors]


def any_schema(schema: JsonObject) -> list[str]:
    """Check nothing: no list of keywords is known of the vendor, so its responses are checked."""
    return []
