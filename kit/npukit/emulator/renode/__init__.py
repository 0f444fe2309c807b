"""Renode: the platform, its devices in C#, the Robot suite, and Renode as a running board."""
