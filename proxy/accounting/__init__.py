"""Limits, budgets and the ledger of a process that serves, put together."""
