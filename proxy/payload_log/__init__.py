"""The payload log: what requests asked and were answered, in a file of its own, for the teams that the table names."""
