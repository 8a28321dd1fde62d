"""Limits of teams, keys, users and deployments: rates, quotas, concurrency slots and budgets. Time is an argument, and
the package opens no sockets. `README.md` is its theory of operation."""
