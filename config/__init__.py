"""The routing table that the operator writes: reading, sections, checks, defaults."""
