"""The sections of the configuration: their keys, values and defaults."""
