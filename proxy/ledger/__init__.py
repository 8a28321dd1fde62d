"""The ledger: one row for each request, from a journal on disk into a database, and what teams have used by it."""
