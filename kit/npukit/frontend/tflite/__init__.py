"""TensorFlow Lite files: read into plain values, then emitted as Relax."""
