"""The payload log: the bodies of requests and responses, in a separate file, for the teams that the configuration
names."""
