"""Operators of Relax as loops of npukit's own, where TVM's take several times as long."""
