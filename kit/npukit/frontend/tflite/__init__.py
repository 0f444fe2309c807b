"""TensorFlow Lite files: read here, as plain values, and emitted as Relax."""
