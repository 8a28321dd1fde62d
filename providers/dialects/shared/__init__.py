"""What several dialects share: bodies, conversations, streams, errors, prompts."""
