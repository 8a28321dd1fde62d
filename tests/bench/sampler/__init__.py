"""On PYTHONPATH while a gateway is profiled."""
