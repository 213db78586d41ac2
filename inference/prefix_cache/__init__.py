"""The engines' prefix caches: cache namespaces, an index of cached blocks, and warm-ups."""
