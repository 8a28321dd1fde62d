"""LiteLLM as a source: its configuration, and what its database holds, as a table."""
