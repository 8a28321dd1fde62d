"""What can be wrong with a table beside its syntax, and what is only doubtful."""
