"""Help: the documents for customers, the REST API reference, and the keyboard shortcuts."""
