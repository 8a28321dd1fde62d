"""Code that several dialects share: request bodies, conversations, streams, errors and prompts."""
