"""What the operator wrote: the routing table, its schema and its secrets. Never runtime objects or vendor knowledge."""
