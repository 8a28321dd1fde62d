"""The documents: generators of `docs/reference`, the hook of the site, and rules for every page."""
