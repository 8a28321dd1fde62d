"""Attempts of one request: which deployment is next, what may be retried, and when. The only place that retries."""
