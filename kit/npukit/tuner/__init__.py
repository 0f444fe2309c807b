"""The search behind `npukit tune`."""
