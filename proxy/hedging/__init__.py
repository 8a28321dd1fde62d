"""Second attempts for late requests: their rules, the requests that may have one, and their limits. Pure."""
