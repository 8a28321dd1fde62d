"""The configuration as a whole: all its sections, its JSON Schema, and the settings that apply to a deployment."""
