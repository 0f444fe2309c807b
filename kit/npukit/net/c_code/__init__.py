"""C of ops without a kind of their own: functions, templates, tables."""
