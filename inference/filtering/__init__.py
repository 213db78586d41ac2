"""What of the engine's text is worth showing, decided while it streams."""
