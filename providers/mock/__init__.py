"""The inside of the mock vendor, an OpenAI-compatible server made of values; `providers.mock.server` is its
interface."""
