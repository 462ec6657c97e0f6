"""Draws way.svg, a document's way from its source to a training step, with the figures of a demo.

.venv/bin/python docs/img/way.py .factory/summary.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

WIDTH, STATION, GAP = 1120, 140, 19
STYLE = """text { font: 12px sans-serif; fill: #1f2328 } .t { font-weight: bold; font-size: 13px }
.n { font-size: 18px } .m { font-family: monospace; font-size: 9.5px } .q { fill: #59636e; font-size: 11px }
.paper { fill: #ffffff } .station { fill: #dafbe1; stroke: #1a7f37 } .left { fill: #ffebe9; stroke: #cf222e }
.still { fill: #f6f8fa; stroke: #8c959f } .way { stroke: #1a7f37; stroke-width: 2 }
.out { stroke: #cf222e; stroke-width: 2 } .back { stroke: #8c959f; stroke-dasharray: 4 3 }"""
TEXT = '<text x="{}" y="{}" class="{}" text-anchor="middle">{}</text>'
ARROW = """<marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"
markerUnits="userSpaceOnUse"><path d="M0 0 L8 4 L0 8 z" fill="{}"/></marker>"""
# a station a line: name | table | figure | who leaves | what is recorded | where
STATIONS = """source|files, jsonl, ...|{read:,}|||
ingest|raw|{raw:,}|{no_raw:,} bad records|reason, place|raw.*_rejected
filter|signals, filtered|{filtered:,}|{no_filtered:,} fail a rule|rule, value, limit|filtered
deduplicate|deduplicated|{deduplicated:,}|{no_deduplicated:,} duplicates|kept one, likeness|dedup.*_decisions
sort|sorted|{sorted:,} code|none leaves|{broken:,} edges broken|depsort.*_dependencies
tokenize, pack|tokenized, packed|{packed:,} rows|none leaves|{tokens:,} tokens|packed.*_placements
serve|a blend|{steps:,} steps|none leaves|found by arithmetic|blends/&lt;id>.json"""


def figures(summary: dict[str, Any]) -> dict[str, int]:
    """The numbers of `STATIONS`, summed over the datasets of a summary."""

    def rows(namespace: str, column: str = "rows_out") -> int:
        return sum(it[column] for it in summary["stages"] if it["table"].startswith(f"{namespace}."))

    return {
        **{name: rows(name) for name in ("raw", "filtered", "deduplicated", "sorted", "packed")},
        "read": rows("raw", "rows_in"),
        **{f"no_{of}": rows(of, "rows_in") - rows(of) for of in ("raw", "filtered", "deduplicated")},
        "broken": sum(it["edges"] - it["satisfied"] for it in summary["order"].values()),
        "tokens": sum(it["tokens"] for it in summary["packing"].values()),
        "steps": summary["blend"]["steps"],
    }


def draw(summary: dict[str, Any]) -> str:
    """The whole picture as SVG."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 300"><style>{STYLE}</style>']
    parts += [ARROW.format(*of) for of in (("a", "#1a7f37"), ("b", "#cf222e"), ("c", "#8c959f"))]
    parts.append(f'<rect class="paper" width="{WIDTH}" height="300" rx="8"/>')

    def box(kind: str, left: float, top: float, height: float, *lines: tuple[float, str, str]) -> None:
        parts.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{STATION}" height="{height}" rx="6"/>'
        )
        parts.extend(TEXT.format(left + STATION / 2, *line) for line in lines)

    for number, line in enumerate(STATIONS.format(**figures(summary)).split("\n")):
        left = 13 + number * (STATION + GAP)
        name, table, figure, leaves, what, where = line.split("|")
        box("station", left, 62, 88, (84, "t", name), (104, "m", table), (136, "n", figure))
        if number:
            kind = "still" if leaves == "none leaves" else "left"
            box(kind, left, 190, 70, (209, "t", leaves), (229, "q", what), (249, "m", where))
            parts.append(f'<path class="way" d="M{left - GAP} 106 H{left - 2}" marker-end="url(#a)"/>')
            if kind == "left":
                parts.append(f'<path class="out" d="M{left + 70} 151 V187" marker-end="url(#b)"/>')
    for y, words, way in ((30, "document", "M14 44 H1100"), (290, "batch", "M1100 272 H14")):
        parts.append(f'<path class="back" d="{way}" marker-end="url(#c)"/>')
        parts.append(TEXT.format(WIDTH / 2, y, "m", f"factory trace {words}"))
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    Path(__file__).with_name("way.svg").write_text(draw(json.loads(Path(sys.argv[1]).read_text())))
