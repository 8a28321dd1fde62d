"""`dragoman schema`: print the JSON Schema of the config file, with the names of the profiles."""

import sys

from config.table.table_json_schema import schema_text
from providers.profiles.load_profiles import load_profiles


def schema() -> int:
    """Print the schema. The output is byte for byte the content of `config/schema.json`."""
    sys.stdout.write(schema_text(load_profiles()))
    return 0
