"""C of ops that are none of the other kinds: its functions, its templates, their tables."""
