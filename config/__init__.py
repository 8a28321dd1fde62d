"""The configuration that the operator writes: reading, sections, checks, defaults."""
