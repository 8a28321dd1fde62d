"""From completions, chunks and errors to the bytes a client gets. Pure."""
