"""How much a map keeps, and how sure that is."""
