"""`factory assets`: every asset, by dataset."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from factory.cli.selection import AssetGroup, title


def show_assets(groups: Sequence[AssetGroup], console: Console, *, as_json: bool) -> None:
    """Print the assets of each group; a dataset's title selects them all."""
    if as_json:
        plain = [
            {"kind": group.kind, "name": group.name, "assets": [key.to_user_string() for key in group.keys]}
            for group in groups
        ]
        console.print_json(json.dumps(plain))
        return
    table = Table("dataset", "assets, upstream first", box=None, header_style="bold")
    for group in groups:
        table.add_row(title(group), "  ".join(key.to_user_string() for key in group.keys))
    console.print(table)
    console.print("\nThe name of a dataset selects its assets: factory materialize NAME.")
