"""Changes of requests and responses that many vendors need alike: ids of calls, merged texts, the order of results,
which tools are offered, what the model takes, and which fields are left out."""
