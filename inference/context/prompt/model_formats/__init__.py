"""The format that each model family expects: FIM markers, layouts and chat templates."""
