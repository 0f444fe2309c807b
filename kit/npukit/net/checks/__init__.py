"""Checks of single ops, called by `check.py` for each op of a net."""
