"""The internals of the mock vendor, a simulated OpenAI-compatible server without I/O; `providers.mock.server` is its
interface."""
