"""The teams of clients and their use: keys, wrong keys, limits, retry budgets."""
