"""The operator's listener: the status of the gateway over all of its processes, and the check of the admin token."""
