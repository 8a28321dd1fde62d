"""llama.cpp's own endpoints."""
