"""The operator's listener: what it shows of the gateway in however many processes, and to whom."""
