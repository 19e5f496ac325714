"""Maps from one space to another, one algorithm per file."""
