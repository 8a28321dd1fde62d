"""The strings of a client's JSON, by kind: texts, names, media, and words of the APIs."""
