"""What is shipped to run the gateway elsewhere, against the tools of those places."""
