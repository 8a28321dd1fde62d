"""The sections of the table: their keys, values, defaults and JSON Schema."""
