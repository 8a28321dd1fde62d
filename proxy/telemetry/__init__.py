"""Metrics, the access log and the log of the process. They never contain a secret, a prompt or a response."""
