"""Draw docs/img/batches.svg: steps dealt to lanes, the log that orders them, and the slices that ranks read.

python docs/img/batches.py      # writes batches.svg beside this file
"""

from __future__ import annotations

from pathlib import Path

LANES, COMMITTED = 4, (3, 3, 1, 2)  # batches of each lane that are committed
WIDTH, HEIGHT, CELL = 960, 300, 44
STYLE = """text { font: 12px sans-serif; fill: #1f2328 } .t { font-weight: bold; font-size: 13px }
.m { font-family: monospace; font-size: 11px } .q { fill: #59636e; font-size: 11px } .paper { fill: #ffffff }
.read { fill: #dafbe1; stroke: #1a7f37 } .waits { fill: #fff8c5; stroke: #9a6700 }
.missing { fill: #ffebe9; stroke: #cf222e; stroke-dasharray: 4 3 } .way { stroke: #8c959f; fill: none }"""


def text(x: float, y: float, kind: str, words: str, anchor: str = "middle") -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def cell(x: float, y: float, kind: str, words: str) -> str:
    """A batch."""
    box = f'<rect class="{kind}" x="{x}" y="{y}" width="{CELL - 6}" height="{CELL - 14}" rx="5"/>'
    return box + text(x + CELL / 2 - 3, y + 20, "m", words)


def kind_of(step: int, missing: int) -> str:
    """How a step is drawn: readers see those before the first that is missing."""
    if step // LANES >= COMMITTED[step % LANES]:
        return "missing"
    return "read" if step < missing else "waits"


def draw() -> str:
    """The whole picture as SVG."""
    n_steps = LANES * max(COMMITTED)
    missing = next(step for step in range(n_steps) if step // LANES >= COMMITTED[step % LANES])
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{STYLE}</style>']
    parts.append(f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>')
    parts.append(text(160, 28, "t", "producers write lanes"))
    for lane in range(LANES):
        y = 44 + lane * CELL
        parts.append(text(20, y + 20, "m", f"lane {lane}", "start"))
        for sequence in range(max(COMMITTED)):
            step = lane + LANES * sequence
            kind = kind_of(step, missing)
            if kind != "missing" or step == missing:
                parts.append(cell(80 + sequence * CELL, y, kind, f"{step}"))
    parts.append('<path class="way" d="M230 130 H270"/>')
    parts.append(text(500, 28, "t", "the log orders steps, without a gap"))
    for step in range(n_steps):
        row, column = divmod(step, 6)
        kind = kind_of(step, missing)
        parts.append(cell(290 + column * CELL * 1.6, 70 + row * CELL * 1.5, kind, f"{step}"))
    parts.append(
        text(500, 240, "q", f"step {missing} is that of lane {missing % LANES}, which has not committed it")
    )
    colors = "green: readable; yellow: committed, behind the missing step; red: not committed"
    parts.append(text(500, 258, "q", colors))
    parts.append('<path class="way" d="M720 130 H760"/>')
    parts.append(text(850, 28, "t", "ranks read slices"))
    for dp in range(4):
        y = 60 + dp * 40
        parts.append(f'<rect class="read" x="790" y="{y}" width="120" height="28" rx="5"/>')
        parts.append(text(850, y + 18, "m", f"dp {dp}"))
    parts.append(text(850, 240, "q", "each its own range of one object"))
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    Path(__file__).with_name("batches.svg").write_text(draw())
