"""The wire forms of tasks."""
