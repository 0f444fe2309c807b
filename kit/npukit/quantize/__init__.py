"""Quantisation: a float Relax module and calibration data become a Relax module in QDQ form."""
