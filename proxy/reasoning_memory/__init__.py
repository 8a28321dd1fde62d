"""The reasoning of earlier turns, which vendors want back and most clients do not send."""
