"""Search for a quantisation with a target in decibels."""
