"""Vendors' network compilers: whole subgraphs go out as files, blobs come back."""
