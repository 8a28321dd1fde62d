"""OpenAI's Responses API as a surface: it reads and writes items, and resolves references to stored responses."""
