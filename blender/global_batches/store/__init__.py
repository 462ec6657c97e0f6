"""Where the objects of a namespace lie: a folder or a prefix of a bucket, behind one driver of routines."""
