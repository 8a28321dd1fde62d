"""The strings of a client's JSON, one by one: texts, names, media, and words of the APIs."""
