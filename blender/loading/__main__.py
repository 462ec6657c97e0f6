"""`python -m blender.loading`: a constructor that configures memory before any library allocates some."""

from blender.serving.allocator import keep_freed_memory

if __name__ == "__main__":
    keep_freed_memory()
    from blender.loading.serve import run

    run()
