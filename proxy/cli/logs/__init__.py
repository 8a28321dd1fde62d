"""The command `logs`: shows the gateway's log lines in a readable form."""
