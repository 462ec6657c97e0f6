"""Pictures of samples become patches of one size for an encoder: bytes in, uint8 out.

    content of a file  -> RGB of the planned size     `decode`
                       -> transforms, by name         `transforms`, declared in `rules`
                       -> patches [n, patch * patch * 3]   `patches`

`preparing` does all of it and follows the rule for a picture that does not decode. `encoders` says which
rank gets a picture, `delivered` has the columns that carry it there, and `loaded` gives it to the trainer.
Pillow is imported in `decode` and `resizing` alone, by the process that decodes.
"""
