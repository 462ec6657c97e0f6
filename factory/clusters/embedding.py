"""The embedders of clusters, `factory.models.embedders`, as a part of this stage.

Tables of clusters become stale with the code of embedders, because a module of their stage imports it.
"""

from factory.models.embedders import EmbedderSpec, embedder_table, parse_embedder, vectors

__all__ = ["EmbedderSpec", "embedder_table", "parse_embedder", "vectors"]
