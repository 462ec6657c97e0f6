"""A global batch as bytes: cut for a mesh, one object, a slice for each data and context parallel rank."""
