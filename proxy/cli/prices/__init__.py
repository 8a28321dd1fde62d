"""`dragoman prices`: the current prices, the changes in newer data, and the data file that ships with the gateway."""
