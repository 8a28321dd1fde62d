"""Changes of a translated request that many vendors need alike: ids of calls, the order of results, and which tools are
offered."""
