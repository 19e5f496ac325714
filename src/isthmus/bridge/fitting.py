"""A named map on default preprocessing, measured on one held-out fifth: what fit does for now."""
