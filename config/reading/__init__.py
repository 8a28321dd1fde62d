"""Reads the files of a configuration: YAML with positions, includes, references, certificates."""
