"""Durable global batches: written by any iterator, read by the ranks of a mesh, each exactly once."""
