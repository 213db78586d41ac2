"""Remove secrets from a text before it becomes part of a prompt."""
