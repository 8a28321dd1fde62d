"""The ledger: one row for each request, loaded from a journal on disk into a database, and the usage of teams
from it."""
