"""Deduplication of a group of datasets: weighted MinHash, verified edges, and evidence for every removal.

One module per table, in this order: `bags`, `vocabulary`, `signatures`, `buckets`, `edges`, `components`,
`decisions`. Each has a function of the same name, DataFrame -> DataFrame, and declares the settings its rows
depend on; `decisions.deduplicated` selects the documents that stay.
"""
