"""Converts tools and calls that have their own item types in the Responses API to the form of chats, and back. Pure."""
