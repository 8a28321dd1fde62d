"""Clients' forms: read by one strict grammar, stored, and written anew. Never what a field means."""
