"""`dragoman schema`: the JSON Schema of a table. Never makes it; that is `config.schema_json`."""

import sys

from config.schema_json import schema_text


def schema() -> int:
    """Print the schema, byte for byte the content of `config/schema.json`."""
    sys.stdout.write(schema_text())
    return 0
