"""Deduplication of a group of datasets: weighted MinHash, verified edges, and evidence for every removal.

One module a table, in this order: `vocabulary`, `signatures`, `buckets`, `edges`, `components`,
`decisions`. Each has a function of the same name, DataFrame -> DataFrame; `decisions.deduplicated` gives
the documents that stay.
"""
