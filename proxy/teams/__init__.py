"""The teams of clients: their keys, limits and retry budgets, and the limit on wrong keys."""
