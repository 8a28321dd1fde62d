"""What is kept of conversations between their requests: for each owner, bounded, in this process and at others."""
