"""Extension points: what plugins are made of, loading them, and calling them within deadlines."""
