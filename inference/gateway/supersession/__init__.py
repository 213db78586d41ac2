"""Latest-wins: a new request supersedes the one in flight for the same user and file."""
