"""From a float Relax module and calibration data to a Relax module in QDQ form."""
