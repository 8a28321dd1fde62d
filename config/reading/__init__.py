"""Reads the files of a table: YAML with positions, includes, references, certificates."""
