"""Metrics, the access log and the log of the process. Never a secret, a prompt or an answer."""
