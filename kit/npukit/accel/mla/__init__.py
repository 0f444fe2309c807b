"""A machine-learning array after what is public of SpiNNaker2's, as a plug-in like any vendor's."""
