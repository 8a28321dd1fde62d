"""`dragoman schema`: the JSON Schema of a table, with the profiles there are. Never makes it; that is
`config.schema_json`."""

import sys

from config.schema_json import schema_text
from providers.profiles import load_profiles


def schema() -> int:
    """Print the schema, byte for byte the content of `config/schema.json`."""
    sys.stdout.write(schema_text(load_profiles()))
    return 0
