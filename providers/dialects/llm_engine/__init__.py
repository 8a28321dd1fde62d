"""LLM Engine's completions."""
