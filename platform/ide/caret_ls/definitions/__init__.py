"""Definitions of the symbols at the cursor, which the editor's other language servers find."""
