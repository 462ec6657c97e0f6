"""Answers about documents and tables, as data, from the published tables alone.

    >>> from factory.explain.trace import trace_documents
    >>> [trace] = trace_documents(lake, ["a"])
    >>> trace.outcome, trace.reason
    ('filtered', 'rejected by 1 rule(s): word_count is 1 (limit 9)')
    >>> from factory.explain.diff import diff
    >>> difference = diff(lake, "raw.web", "filtered.web", 1)
    >>> [(cause.cause, cause.documents) for cause in difference.leave.causes]
    [('word_count', 1)]
    >>> from factory.explain.summary import summarize
    >>> summarize(lake, ["web"], groups=[]).values("packing")["web"]["sequences"]
    5

`trace` follows documents from stage to stage, `diff` compares two tables, `export` writes a dataset with the
decision on each document, `summary` counts, and `report` gathers a page. A stage describes its tables in its
view (`factory.explain.stages`); these modules walk the list of views and know no stage.
"""
