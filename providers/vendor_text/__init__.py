"""Reads vendors' messages: finds the cause of a failure, and masks the parts of a message that must not be shown."""
