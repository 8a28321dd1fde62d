"""Limits, budgets and the ledger over real processes: several processes, killed processes, without Redis, without a
database."""
