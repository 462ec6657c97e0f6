"""`python -m blender.serving`: a Blender that configures its memory before any library allocates some."""

from blender.serving.allocator import keep_freed_memory

if __name__ == "__main__":
    keep_freed_memory()
    from blender.serving.serve import run

    run()
