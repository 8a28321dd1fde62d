"""The sections of the table: their keys, values and defaults."""
