"""Ollama's own endpoints."""
