"""Changes to requests and responses that many vendors need: ids of calls, merged texts, the order of results, the tools
that are offered, the limits of the model, and the fields that are left out."""
