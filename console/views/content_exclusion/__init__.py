"""Pages about paths that are never sent: written, tried, and what was refused lately."""
