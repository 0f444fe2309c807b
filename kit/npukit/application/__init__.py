"""What the sensor gives and what the application wants, declared beside the model and compiled into the network."""
