"""Extension points: the interface of plugins, loading them, and calling them within deadlines."""
