"""Triton's generate extension for TensorRT-LLM models."""
