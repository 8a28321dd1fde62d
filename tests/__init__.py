"""Everything that holds the gateway to its claims. Never imported by the three packages."""
