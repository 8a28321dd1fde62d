"""Second attempts of requests that are late: their rules, the requests that may have one, and their bounds. Pure."""
