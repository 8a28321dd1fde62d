"""The table as a whole: all its sections, its JSON Schema, and which settings hold for a deployment."""
