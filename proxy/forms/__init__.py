"""Clients' forms: read by one strict grammar, stored, and written anew. The meaning of fields is handled elsewhere."""
