"""The limits, the budgets and the ledger of a serving process, put together."""
