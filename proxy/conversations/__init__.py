"""Data of conversations that is stored between their requests: for each owner, bounded, in this process and at
others."""
