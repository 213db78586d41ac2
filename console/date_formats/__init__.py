"""How dates and numbers are written, where Django's own way could be misread (11/12/2026)."""
