"""The search for a quantisation that reaches a target."""
