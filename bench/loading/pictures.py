"""Real pictures and their texts: how long they are, what decoding costs, and how uneven microbatches get.

MegaScale-Data shows for its own data that a few long samples have most tokens (Figure 2), that the largest
microbatch has 3.2 times the FLOPs of the smallest for images and 6.9 times for sequences (Figure 3), and that
the time to transform a sample differs by orders of magnitude (Figure 5b). The same of three Debian packages.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import mean

import numpy as np
from rich.console import Console

from bench.harness import Report, Row, table
from bench.loading.laws import CONTEXTS, PAPER_IMAGES, PAPER_SEQUENCES, SEEDS, ObservedPairs, flops
from bench.loading.real_pictures import Picture, Sample, samples
from blender.loading.image_input import ImageInput
from blender.loading.pictures.decode import PlannedSize, pixels_of

INPUT = ImageInput()
WHITE = (255, 255, 255)
SHARES = (5, 50, 95, 100)
SHORT_TOKENS = 64  # of a text, where the paper draws the line
LONGEST = 0.0162  # share of samples, as the paper counts
DATA = "`images`: tuxpaint-stamps-default, gimp-help-en and gnome-backgrounds, as Debian has them"
CAVEATS = (
    "`images`: sizes, texts and CPU times are measured, the latter of decoding and resizing to at most "
    f"{INPUT.most_patches:,} patches of {INPUT.patch} pixels a side; FLOPs are computed. A token is 4 bytes.",
)


def measure(progress: Console) -> Report:
    """Decode every picture once, then fill sequences with the samples."""
    report = Report(CAVEATS, DATA)
    by_source = samples()
    _add_sizes(report, by_source, progress)
    _add_skew(report, by_source)
    _add_microbatches(report, by_source)
    return report


def pairs_by_source(by_source: dict[str, list[Sample]]) -> dict[str, ObservedPairs]:
    """The pairs of text and picture of each source, and of all together, a sample's text in equal shares."""
    every: list[tuple[int, int]] = []
    pairs = {}
    for source, some in by_source.items():
        lengths = [
            (max(1, sample.n_tokens // len(sample.pictures)), int(INPUT.n_patches(*_size(picture))[0]))
            for sample in some
            for picture in sample.pictures
        ]
        pairs[source] = _pairs(lengths)
        every += lengths
    return {**pairs, "all": _pairs(every)}


def _add_sizes(report: Report, by_source: dict[str, list[Sample]], progress: Console) -> None:
    figures = table(
        f"Pictures: {', '.join(map(str, SHARES))} % (measured)",
        "source | pictures | kpx | patches as stored | decode, CPU ms | 95 % / 5 % | RGB over file",
    )
    for source, some in by_source.items():
        pictures = list({picture.path: picture for sample in some for picture in sample.pictures}.values())
        progress.print(f"decoding {len(pictures):,} pictures of {source}")
        pixels = [width * height / 1e3 for width, height in (picture.size for picture in pictures)]
        patches = [picture.patches for picture in pictures]
        cpu_ms, n_bytes = _decoded(pictures)
        ratio = float(np.percentile(cpu_ms, 95) / np.percentile(cpu_ms, 5))
        growth = n_bytes / sum(picture.path.stat().st_size for picture in pictures)
        report.check(f"images {source}: every picture decodes to its planned size", n_bytes > 0)
        figures.add_row(
            source,
            f"{len(pictures):,}",
            *(_quantiles(values) for values in (pixels, patches, cpu_ms)),
            f"{ratio:.0f}x",
            f"{growth:.1f}x",
        )
        label = f"loading.images.{source}"
        report.rows += [
            Row(f"{label}.pictures", len(pictures), "pictures"),
            Row(f"{label}.decode.p50", round(float(np.median(cpu_ms)), 3), "ms"),
            Row(f"{label}.decode.spread", round(ratio, 1), "ratio"),
            Row(f"{label}.rgb_over_file", round(growth, 2), "ratio"),
        ]
    report.tables.append(figures)


def _add_skew(report: Report, by_source: dict[str, list[Sample]]) -> None:
    figures = table(
        "Samples by length (measured): Figure 2",
        f"source | text, tokens | texts up to {SHORT_TOKENS} | longest {LONGEST:.2%} of texts have | "
        f"largest {LONGEST:.2%} of samples have, of patches",
    )
    for source, some in by_source.items():
        texts = np.array([sample.n_tokens for sample in some])
        patches = np.array([sum(picture.patches for picture in sample.pictures) for sample in some])
        short = float((texts <= SHORT_TOKENS).mean())
        figures.add_row(
            source,
            _quantiles(texts),
            f"{short:.1%}",
            *(f"{_share_of_longest(lengths):.1%}" for lengths in (texts, patches)),
        )
        report.rows.append(
            Row(f"loading.images.{source}.patches_of_largest", round(_share_of_longest(patches), 4), "share")
        )
    figures.add_row("the paper's coyo", "", "98.2%", "9.3%", "")
    report.tables.append(figures)


def _add_microbatches(report: Report, by_source: dict[str, list[Sample]]) -> None:
    figures = table(
        "FLOPs of the largest microbatch over the smallest (computed): Figure 3",
        "source | context | images | sequences",
    )
    for source, pairs in pairs_by_source(by_source).items():
        for context in CONTEXTS:
            steps = [flops(pairs, context, np.random.default_rng(seed)) for seed in SEEDS]
            images, sequences = (
                mean(float(costs.max() / costs.min()) for costs in some) for some in zip(*steps, strict=True)
            )
            figures.add_row(source, f"{context:,}", f"{images:.1f}x", f"{sequences:.2f}x")
            label = f"loading.images.{source}.{context}"
            report.rows += [
                Row(f"{label}.images", round(images, 3), "ratio"),
                Row(f"{label}.sequences", round(sequences, 3), "ratio"),
            ]
    figures.add_row("the paper", "", f"{PAPER_IMAGES}x", f"{PAPER_SEQUENCES}x")
    report.tables.append(figures)


def _decoded(pictures: Sequence[Picture]) -> tuple[list[float], int]:
    """The CPU milliseconds of each picture, and the bytes of all as RGB of the planned size."""
    cpu_ms, n_bytes = [], 0
    for picture in pictures:
        content, (width, height) = picture.path.read_bytes(), picture.size
        across, down = (int(side[0]) * INPUT.patch for side in INPUT.grid([width], [height]))
        begin = time.thread_time()
        rgb = pixels_of(content, PlannedSize(across, down, width, height), WHITE)
        cpu_ms.append(1e3 * (time.thread_time() - begin))
        assert rgb.shape == (down, across, 3)
        n_bytes += rgb.nbytes
    return cpu_ms, n_bytes


def _pairs(lengths: Sequence[tuple[int, int]]) -> ObservedPairs:
    texts, patches = zip(*lengths, strict=True)
    return ObservedPairs(np.array(texts), np.array(patches))


def _size(picture: Picture) -> tuple[list[int], list[int]]:
    width, height = picture.size
    return [width], [height]


def _share_of_longest(lengths: np.ndarray) -> float:
    """The share of the sum that the longest have."""
    n_longest = max(1, round(LONGEST * len(lengths)))
    return float(np.sort(lengths)[-n_longest:].sum() / max(1, lengths.sum()))


def _quantiles(values: Sequence[float] | np.ndarray) -> str:
    return " / ".join(
        f"{quantile:,.3g}" if quantile < 1_000 else f"{quantile:,.0f}"
        for quantile in np.percentile(values, SHARES)
    )
