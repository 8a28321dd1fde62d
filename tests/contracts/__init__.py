"""The vendors' own published types as judges of what goes out and of the fixtures; each needs an SDK of its own."""
