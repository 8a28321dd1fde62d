"""What teams, keys and deployments may use: rates, quotas, places and budgets. Time is an argument; no sockets."""
