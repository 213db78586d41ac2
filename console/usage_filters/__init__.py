"""What pages about usage share: which part of which time is asked about, and numbers as text."""
