"""A folder on PYTHONPATH while a gateway is profiled."""
