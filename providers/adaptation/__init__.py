"""Changes of translated requests and responses that many vendors need alike: ids of calls, merged texts, the order of
results, and which tools are offered."""
