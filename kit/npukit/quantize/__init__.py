"""Quantisation: turns a float Relax module and calibration data into a Relax module in QDQ form."""
