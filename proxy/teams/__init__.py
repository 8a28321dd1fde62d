"""Who a client is, and what each team has used: keys, wrong keys, limits, retry budgets."""
