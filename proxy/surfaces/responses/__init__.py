"""OpenAI's Responses API as a surface: items in, items out, references to stored responses."""
