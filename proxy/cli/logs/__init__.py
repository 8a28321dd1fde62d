"""The command `logs`: shows the gateway's log lines to people."""
