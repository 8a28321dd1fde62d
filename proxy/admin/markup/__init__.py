"""HTML and SVG as text."""
