"""Synthesis: datasets that workers make from the documents of another dataset.

A job names a kind of worker, a dataset to read, and a size. Its items wait in a queue in the warehouse, and
workers of any machine lease them in slices; the run that declares the dataset collects their records as its
raw documents. The source is the data factory of seed 004, "Synthetic data generation".
"""
