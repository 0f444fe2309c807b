"""Checks of single ops, which `check.py` makes of a whole net."""
