"""Changes of a translated request that many vendors need alike: the order of results, and which tools are offered."""
