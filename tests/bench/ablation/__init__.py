"""How much each fast path saves: the gateway without the fast path is measured beside the unchanged gateway."""
