"""Pages about consent, and about people who ask what is held of them or that it goes."""
