"""Text Generation Inference's own endpoints."""
