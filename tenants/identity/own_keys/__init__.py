"""Keys that members create for themselves: in the console, or by signing in from an editor."""
