"""The receipt of a request: where its time went, as a header, as a comment, and for the log and spans."""
