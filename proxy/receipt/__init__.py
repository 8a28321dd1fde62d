"""The receipt of a request: the parts of its duration, as a header, as a comment, and for the log and spans."""
