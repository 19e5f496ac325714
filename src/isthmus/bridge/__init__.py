"""The artifact: a fitted map with its spaces, its measured honesty, and its hash."""
