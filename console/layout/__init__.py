"""What surrounds every page: navigation, search, preferences, and how parts of pages are sent."""
