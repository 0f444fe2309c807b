"""The sensor's values and the application's wishes, declared beside the model and compiled into the network."""
