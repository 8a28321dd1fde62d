"""`dragoman schema`: print the JSON Schema of a table, with the names of the profiles."""

import sys

from config.table.table_json_schema import schema_text
from providers.profiles.load_profiles import load_profiles


def schema() -> int:
    """Print the schema, byte for byte the content of `config/schema.json`."""
    sys.stdout.write(schema_text(load_profiles()))
    return 0
