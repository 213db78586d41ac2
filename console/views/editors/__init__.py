"""Editors: Caret's own clients to download, and the settings of all clients."""
