"""Renders completions, chunks and errors as the bytes that a client gets. Pure."""
