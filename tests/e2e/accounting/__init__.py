"""Limits, budgets and the ledger over real processes: together, killed, without Redis, without a database."""
