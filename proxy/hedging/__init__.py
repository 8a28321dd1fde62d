"""Second attempts of requests that are late: their rules, which requests have one, and what bounds them. Pure."""
