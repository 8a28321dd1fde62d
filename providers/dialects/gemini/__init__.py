"""Gemini's `generateContent`, also on Vertex AI."""
