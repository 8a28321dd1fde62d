"""`dragoman prices`: the prices in force, what newer data would change, and the data file that ships."""
