"""The usual chain of a dataset, from raw documents to packed sequences, declared in one call.

    GROUP = dedup_group("web", ["web"], kind="prose")
    PLAIN = Round(rules=["gopher_quality"])
    LONG = Round(rules=["gopher_quality"], limits={"word_count": [200, 100_000]})
    WEB = refine("web", dedup_group=GROUP, rounds=[PLAIN], tokenizer="tokenizer")
    assets = [*GROUP.assets, *WEB, *variant(WEB, "long", rounds=[LONG]), tokenizer("tokenizer", ["web"])]

    raw -> signals -> filtered -> [dedup group] -> deduplicated -> [depsort] -> tokenized -> packed

A variant is a dataset of its own from `filtered` on: `filtered.web__long` to `packed.web__long`. A variant
that only changes the similarity threshold or the keep rule begins at `deduplicated`. Each asset body is one
call of a stage, so any part of this chain can also be declared by hand, and other links can be put between
(`factory.orchestration.chain.link`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from factory.dedup.decisions import Keep
from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.lake import names
from factory.orchestration.chain.dedup.group import DedupGroup, Deduplication, dedup_group, dedup_variant
from factory.orchestration.chain.depsort import DependencyOrder
from factory.orchestration.chain.filters import FilterRound, Filters
from factory.orchestration.chain.filters_preparation import PreparedRound
from factory.orchestration.chain.link import Chain, Link, Links, linked
from factory.orchestration.chain.packing import Packing
from factory.orchestration.chain.texts import Quality
from factory.packing.pack import PackConfig
from factory.packing.samples import SampleConfig
from factory.packing.tokenize import TokenizeConfig


def refine(
    dataset: str,
    *,
    dedup_group: DedupGroup,
    rounds: Sequence[Round | PreparedRound],
    tokenizer: str,
    packing: PackConfig | SampleConfig | None = None,
    around: TokenizeConfig | None = None,
    validation: float | None = None,
    image: str | None = None,
    owners: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
) -> Chain:
    """Every asset of `dataset` after `raw.<dataset>`; the assets of its dedup group are declared apart.

    Each of `rounds` filters the documents that earlier rounds kept. A code dataset is sorted by dependency
    before it is tokenized; the tokens of `around` enclose each document. A share `validation` of its
    repositories, and of its documents without one, is packed apart, also in its variants. `image` is the
    token of pictures, for a dataset with pictures in its `raw` table; its rows are samples. With the
    `partitions_def` of `raw.<dataset>`, signals and verdicts are made partition by partition, because they
    need one document at a time; later tables compare documents, so they are made as a whole. `owners` are
    mail addresses and `team:name`s. Raises ConfigurationError for a rule, a name or a group that does not
    fit.
    """
    if names.VARIANT in dataset:
        raise ConfigurationError(
            f"`{dataset}` is the name of a variant. Declare it with variant(chain, ...), from the chain that "
            f"refine(`{names.base(dataset)}`, ...) gives."
        )
    chain = Chain.from_raw(dataset, owners, partitions_def)
    dedup_group.member(dataset)  # the group is wrong before anything else is
    links: list[Link | Links] = [
        Filters(rounds),
        Deduplication(dedup_group),
        *([DependencyOrder()] if dedup_group.kind == "code" else []),
        Packing(
            tokenizer,
            packing or (PackConfig() if image is None else SampleConfig()),
            around or TokenizeConfig(),
            validation,
            image,
        ),
    ]
    return linked(chain, links)


def variant(
    chain: Chain,
    name: str,
    *,
    rounds: Sequence[Round | PreparedRound] | None = None,
    threshold: float | None = None,
    keep: Keep | None = None,
    dedup_group: DedupGroup | None = None,
    packing: PackConfig | SampleConfig | None = None,
) -> Chain:
    """A variant of `chain`, `<dataset>__<name>`, with other filters or another deduplication.

    With `rounds` it reads the same `raw` table, and the same signals if they cover its rules: a new limit
    reads no text. It then has a dedup group of its own, with the options of the first group. Without `rounds`
    it shares all verdicts and comparisons, and only the similarity `threshold` or the `keep` rule differs.
    Give `dedup_group` to compare variants of several datasets: a group of these variants, or the
    `dedup_variant` of the first group.
    """
    dataset = names.variant(chain.dataset, name)
    if rounds is None and threshold is None and keep is None and dedup_group is None:
        raise ConfigurationError(
            f"`{dataset}` does not differ from `{chain.dataset}`. Give the variant `rounds`, a `threshold` "
            "or `keep`."
        )
    for option, choice in (("threshold", threshold), ("keep", keep)):
        if choice is not None and dedup_group is not None:
            raise ConfigurationError(
                f"`{dataset}` has both a `{option}` and dedup group `{dedup_group.name}`, whose own is "
                f"{getattr(dedup_group.config, option)}. Leave one out."
            )
    before = _before_deduplication(chain, dataset, rounds)
    group = dedup_group or _own_group(chain, before, name, rounds, threshold, keep)
    group.member(dataset)
    after = [_packed_by(link, packing) for link in chain.links_after(Deduplication)]
    extended = linked(before, [Deduplication(group), *after])
    return extended if dedup_group else replace(extended, assets=(*group.assets, *extended.assets))


def _before_deduplication(
    chain: Chain, dataset: str, rounds: Sequence[Round | PreparedRound] | None
) -> Chain:
    """The links of a variant before its group: the links of `chain`, perhaps with other `rounds`."""
    if rounds is None:
        return chain.extension(Deduplication).before.for_variant(dataset)
    first = chain.extension(FilterRound)
    links = [first.link, *chain.links_after(FilterRound)]
    before = links[: links.index(chain.link(Deduplication))]
    filters = Filters.for_variant(chain, rounds)
    return linked(first.before.for_variant(dataset), _with_rounds(before, filters.links()))


def _with_rounds(links: Sequence[Link], rounds: Sequence[Link]) -> list[Link]:
    """Replace the rounds among `links`; links behind the last round stay behind the last one.

    A link between two rounds stays behind as many rounds as before, if the new ones are as many.
    """
    n_replaced = sum(isinstance(link, FilterRound) for link in links)
    others: list[list[Link]] = [[] for _ in rounds]
    n_before = 0
    for link in links:
        if isinstance(link, FilterRound):
            n_before += 1
        else:
            number = len(rounds) if n_before == n_replaced else min(n_before, len(rounds))
            others[number - 1].append(link)
    return [link for number, round_link in enumerate(rounds) for link in (round_link, *others[number])]


def _own_group(
    chain: Chain,
    before: Chain,
    name: str,
    rounds: Sequence[Round | PreparedRound] | None,
    threshold: float | None,
    keep: Keep | None,
) -> DedupGroup:
    """The default group of a variant, which compares the documents of `before`."""
    group = chain.link(Deduplication).group
    if rounds is None:
        return dedup_variant(group, name, threshold, keep)
    choices = {"threshold": threshold, "keep": keep}
    return dedup_group(
        before.dataset,
        [before],
        kind=group.kind,
        config=group.config.changed(
            **{option: choice for option, choice in choices.items() if choice is not None}
        ),
        repositories=group.repositories,
        quality=_same_quality(group, before),
        owners=chain.owners,
    )


def _same_quality(group: DedupGroup, chain: Chain) -> Quality | None:
    """Return where the chain of a variant has the values of the rule that its first group reads."""
    if group.quality is None:
        return None
    rule = group.quality.rule
    return Quality(rule, {chain.dataset: chain.link(FilterRound).filters.table_of(chain.dataset, rule)})


def _packed_by(link: Link, packing: PackConfig | SampleConfig | None) -> Link:
    """Return the link, with another configuration if it packs and there is one."""
    return replace(link, config=packing) if isinstance(link, Packing) and packing else link
