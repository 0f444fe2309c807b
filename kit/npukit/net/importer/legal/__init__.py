"""npukit's own loops for Relax operators, where TVM's loops take several times as long."""
