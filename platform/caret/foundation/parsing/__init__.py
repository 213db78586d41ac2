"""Tree-sitter parsers, bounded in time."""
