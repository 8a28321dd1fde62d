"""Tools and calls that the Responses API has items of its own for, as chats have them, and back. Pure."""
