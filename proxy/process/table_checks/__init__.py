"""Checks of a loaded configuration that is about to be served: credentials, limits of responses, its own address."""
