"""Tree-sitter parsers with a time limit."""
