"""The inside of the mock vendor: an OpenAI-compatible server made of values. `providers.mock` is its only door."""
