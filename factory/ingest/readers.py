"""Raw material as two DataFrames, documents and rejected records, from one pass over the input.

`Ingests` lists names on the driver and deals them out to the executors, which read. The result is persisted,
so that both DataFrames of an `Ingested` come from one pass over every file; `Ingested.release`, or
`Ingests.release` for a whole run, frees it when both are written.

Invariant: every input (a file, a line, a row, a topic) is in exactly one of the two, and neither holds an
absolute path.

Parquet files that qualify are registered (`factory.lake.registration`): `Ingested.registered` has the
documents without text, each with the location of its text, for assets that publish them unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError
from factory.ingest.html_extra import require_html
from factory.ingest.image_items import companions_of, image_work, patterns_of, state_places
from factory.ingest.images_extra import require_images
from factory.ingest.ingested import MAX_REJECTED, Ingested, Registered
from factory.ingest.installation import installation_work
from factory.ingest.items import Paths, Patterns, Tree, files_in, files_of, folders, named, paths_in
from factory.ingest.left_out import endings_excluded, endings_left_out
from factory.ingest.licenses import license_of
from factory.ingest.listing import UNWANTED, Work, as_table, first_names
from factory.ingest.overlapping_paths import refuse_overlap
from factory.ingest.parts import (
    PART_BYTES,
    has_borders,
    has_own_numbers,
    in_parts,
    parts_read_again,
    with_numbers_of_files,
)
from factory.ingest.registering import registering
from factory.ingest.repeated import Resolve, first_of_each_key, latest_captures
from factory.ingest.state import listing
from factory.ingest.tasks import TASK, tasks_of
from factory.ingest.web_pages import refuse_pages
from factory.lake.registration import Candidates
from factory.lake.schemas.images import IMAGES
from factory.lake.schemas.ingest import RAW, REJECTED, TEXT_AT
from factory.lake_spark.storage import storage_of
from factory.settings import CATALOG_NAME
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.html import WebPages
from spark_udfs.ingest.image_document import ImageOptions
from spark_udfs.ingest.markup import Markup
from spark_udfs.ingest.matching import MatchingFiles, folder_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.registry import OF_MANY_RECORDS, RECORD_FILES
from spark_udfs.ingest.rows import SCAN, Origin
from spark_udfs.ingest.work import read_work

HTML_FILES = ("**/*.html", "**/*.htm", "**/*.xhtml")
Captures = Literal["all", "latest"]

__all__ = ["MAX_REJECTED", "Fields", "Ingested", "Ingests", "Registered"]


class Ingests:
    """The readers of raw material, over one SparkSession.

    With a `limit` a reader reads the first so many records, for a first try: documents and rejected records
    together, in the order of the paths, the files of a folder before its subfolders. It opens no
    file behind them, and reads files of many records one after another.

    With `markup="reject"` a document that is a web page, by its name or by how it begins, is a rejected
    record, and files that are pages by name are refused before one is read (ConfigurationError). That is the
    default where no repository is named, because markup in prose is a mistake; code keeps it.

    A file of more than `part_bytes` is read by several tasks, if its format allows.
    """

    def __init__(self, spark: SparkSession, part_bytes: int = PART_BYTES) -> None:
        self._spark = spark
        self._part_bytes = part_bytes
        self._warehouse = spark.conf.get(f"spark.sql.catalog.{CATALOG_NAME}.warehouse", "")
        self._storage = storage_of(spark)
        self._read: list[Ingested] = []

    def files(
        self,
        paths: Paths,
        include: Patterns = "**/*",
        exclude: Patterns = UNWANTED,
        *,
        source: str | None = None,
        repository: str | None = None,
        revision: str | None = None,
        license: str | None = None,
        metadata: Mapping[str, str] | None = None,
        limit: int | None = None,
        markup: Markup | None = None,
    ) -> Ingested:
        """Read each file below the folders `paths` as a document; its key is the path below its folder.

        `include` and `exclude` are glob patterns of that path (`**/` for any folders). `source` defaults to
        the folder's own name. The extension decides language and media type. Links are rejected, not
        followed, and so are bytes that are not UTF-8 (or the encoding a Python file declares).
        """
        origin = Origin(source or "", repository, revision, license, dict(metadata or {}))
        trees = [Tree(folder, named(origin, folder)) for folder in folders(paths)]
        work = files_in(trees, include, exclude)
        count_excluded = partial(endings_excluded, trees, include, exclude)
        choice = _markup(markup, repository)
        return self._ingest(work, paths, limit=limit, markup=choice, count_excluded=count_excluded)

    def repositories(
        self,
        paths: Paths,
        include: Patterns = "**/*",
        exclude: Patterns = UNWANTED,
        *,
        revision: str | None = None,
        license: str | None = None,
        metadata: Mapping[str, str] | None = None,
        limit: int | None = None,
        markup: Markup = "keep",
    ) -> Ingested:
        """Read each folder in the folders `paths` as a repository of its name, its files like `files`.

        `license` defaults to the one a repository declares, or that its license files are recognized as.
        Files and links next to the repositories belong to no repository.
        """
        origin = Origin("", None, revision, license, dict(metadata or {}))
        trees = _repositories(paths, origin)
        licensed = (_licensed(tree) if tree.deep else tree for tree in trees)  # as far as they are read
        work = files_in(licensed, include, exclude)
        count_excluded = partial(endings_excluded, trees, include, exclude)
        return self._ingest(work, paths, limit=limit, markup=markup, count_excluded=count_excluded)

    def jsonl(
        self,
        paths: Paths,
        fields: Fields | None = None,
        *,
        source: str | None = None,
        license: str | None = None,
        limit: int | None = None,
        markup: Markup = "reject",
    ) -> Ingested:
        """Read each line of `.jsonl` and `.ndjson` files, plain or compressed, as a document.

        `paths` are files, or folders to search, where `.json.gz`, `.json.zst`, `.json.bz2` and `.json.xz`
        count, too; `fields` maps the fields of a record. A record without a key
        of its own has the key `file:line`; of several records with one key the first is the document.
        `source` defaults to the name of the path. A folder with the card of a Hugging Face dataset takes its
        default source, license and language from the card. A line that is too long is rejected, never held.
        """
        origin, fields = Origin(source or "", license=license), fields or Fields()
        work = files_of("jsonl", paths, origin)
        return self._ingest(
            work,
            paths,
            fields,
            resolve=_by_key(fields),
            limit=limit,
            markup=markup,
            patterns=RECORD_FILES["jsonl"],
        )

    def parquet(
        self,
        paths: Paths,
        fields: Fields | None = None,
        *,
        source: str | None = None,
        license: str | None = None,
        limit: int | None = None,
        markup: Markup = "reject",
    ) -> Ingested:
        """Read each row of Parquet files as a document, with the arguments of `jsonl` and keys `file:row`.

        An unreadable file is one rejected record, and so is the damaged rest of a row group. Files that
        Iceberg can read where they are get registered, not rewritten, unless texts are made of other fields.
        """
        origin, fields = Origin(source or "", license=license), fields or Fields()
        candidates = None if fields.text_column is None else Candidates(fields.text_column, self._storage)
        work = first_names(files_of("parquet", paths, origin), limit)
        if candidates is not None:
            work = registering(work, candidates, self._warehouse, limit)
        patterns = RECORD_FILES["parquet"]
        return self._ingest(work, paths, fields, candidates, _by_key(fields), limit, markup, patterns)

    def html(
        self,
        paths: Paths,
        include: Patterns = HTML_FILES,
        exclude: Patterns = UNWANTED,
        options: WebPages | None = None,
        *,
        source: str | None = None,
        repository: str | None = None,
        revision: str | None = None,
        license: str | None = None,
        metadata: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> Ingested:
        """Read the main text of each HTML file below the folders `paths`, with the arguments of `files`.

        The `metadata` of a page has its title, language and the like, and how it was read. A page
        without a main text is rejected. Needs the extra `html`.
        """
        require_html()
        origin = Origin(source or "", repository, revision, license, dict(metadata or {}))
        trees = [Tree(folder, named(origin, folder)) for folder in folders(paths)]
        work = files_in(trees, include, exclude, format="html")
        patterns = HTML_FILES if include == HTML_FILES else ()
        count_excluded = partial(endings_excluded, trees, include, exclude)
        return self._ingest(
            work,
            paths,
            options or WebPages(),
            limit=limit,
            patterns=patterns,
            exclude=exclude,
            count_excluded=count_excluded,
        )

    def warc(
        self,
        paths: Paths,
        options: WebPages | None = None,
        *,
        source: str | None = None,
        license: str | None = None,
        captures: Captures = "all",
        limit: int | None = None,
    ) -> Ingested:
        """Read the main text of each page in WARC archives, and the texts of WET archives.

        `paths` are archives, or folders to search. The key of a document is the WARC-Record-ID, and its
        `metadata` has the place of the record. Of several captures of an address the `latest` stays, if that
        is asked for; by default all are documents. Needs the extra `html`.
        """
        require_html()
        origin = Origin(source or "", license=license)
        resolve = [first_of_each_key, *([latest_captures] if captures == "latest" else [])]
        work = files_of("warc", paths, origin)
        patterns = RECORD_FILES["warc"]
        return self._ingest(
            work, paths, options or WebPages(), resolve=resolve, limit=limit, patterns=patterns
        )

    def archive(
        self,
        paths: Paths,
        *,
        source: str | None = None,
        repository: str | None = None,
        revision: str | None = None,
        license: str | None = None,
        metadata: Mapping[str, str] | None = None,
        limit: int | None = None,
        markup: Markup | None = None,
    ) -> Ingested:
        """Read each member of zip and tar archives as a document with the key `archive!/member`.

        `paths` are archives, or folders to search; a tar archive may be compressed by gzip, bzip2, xz or
        Zstandard. Members are treated like the files of `files`. `source` defaults to the name of the path.
        """
        origin = Origin(source or "", repository, revision, license, dict(metadata or {}))
        work = files_of("archive", paths, origin)
        choice, patterns = _markup(markup, repository), RECORD_FILES["archive"]
        return self._ingest(work, paths, limit=limit, markup=choice, patterns=patterns)

    def images(
        self,
        paths: Paths,
        options: ImageOptions | None = None,
        *,
        source: str | None = None,
        license: str | None = None,
        limit: int | None = None,
    ) -> Ingested:
        """Read pictures with their texts as documents, in the layout of `options`; see `docs/readers.md`.

        `paths` are files, or folders to search. The documents have the column `images` too, with the bytes
        and sizes of their pictures. Needs the extra `images`, and `html` for pages.
        """
        options = options or ImageOptions()
        require_images()
        if options.layout == "pages":
            require_html()
        work = image_work(paths, Origin(source or "", license=license), options)
        return self._ingest(
            work,
            paths,
            options,
            resolve=[] if options.key is None else [first_of_each_key],
            limit=limit,
            patterns=patterns_of(options),
            exclude=(*UNWANTED, *companions_of(options)),
            columns=(*RAW.names, IMAGES),
            state_places=state_places(map(place_of, paths_in(paths)), options),
        )

    def installation_code(self, share: float) -> Ingested:
        """Read the Python sources of this installation's repositories with a position below `share`.

        A repository is the standard library or an installed distribution; see `installation`.
        """
        return self._ingest(installation_work("code", share))

    def installation_prose(self, share: float) -> Ingested:
        """Read the prose of the repositories with a position below `PROSE_REACH * share`.

        Prose is long descriptions, licenses, documentation and pydoc's topics.
        """
        return self._ingest(installation_work("prose", share))

    @property
    def readings(self) -> tuple[Ingested, ...]:
        """Everything read so far and not freed."""
        return tuple(self._read)

    def release(self) -> None:
        """Free everything read so far."""
        for ingested in self._read:
            ingested.release()
        self._read.clear()

    def _ingest(
        self,
        work: Iterable[Work],
        paths: Paths = (),
        options: object = None,
        candidates: Candidates | None = None,
        resolve: Sequence[Resolve] = (),
        limit: int | None = None,
        markup: Markup = "keep",
        patterns: Sequence[str] = (),
        exclude: Patterns = UNWANTED,
        count_excluded: Callable[[], Mapping[str, int]] = dict,
        columns: Sequence[str] = RAW.names,
        state_places: Sequence[Place] | None = None,
    ) -> Ingested:
        """Read `work`; `patterns` are the format's, for folders if the user chose no files by name.

        Documents have the `columns` of the scan. The state is of all files at `state_places`, by default at
        `paths`.

        Left out are the files of other formats, unless they match `exclude`, and the files that
        `count_excluded` counts by ending: `exclude` alone keeps these from the reader.
        """
        if limit is not None and limit < 1:
            raise ConfigurationError(f"`limit` is {limit}, and a dataset needs a record. Use 1 or more.")
        places = [place_of(path) for path in paths_in(paths)]
        before = listing(places if state_places is None else state_places, self._part_bytes)
        items = list(first_names(work, limit))  # each name gives one record or more
        refuse_overlap(
            map(folder_of, places), ((chunk.place.address, name) for chunk in items for name in chunk.names)
        )
        if limit is None:
            items = list(in_parts(items, before.large, self._part_bytes))
        work_rows = as_table(items)
        if markup == "reject":
            texts = (row for row in work_rows.to_pylist() if row["format"] == "text")
            refuse_pages([name for row in texts for name in row["names"]])
        of_many_records = not OF_MANY_RECORDS.isdisjoint(work_rows["format"].to_pylist())
        rest = limit if of_many_records else None
        n_cores = self._spark.sparkContext.defaultParallelism
        tasks = [0] * len(items) if rest else tasks_of(items, before.large, n_cores)
        items_by_task = work_rows.append_column(TASK, pa.array(tasks, TASK.type))
        scan = (
            self._spark.createDataFrame(items_by_task, from_arrow_schema(items_by_task.schema))
            .repartitionById(max(tasks, default=0) + 1, TASK.name)
            .mapInArrow(
                partial(read_work, options=options, limit=rest, markup=markup), from_arrow_schema(SCAN)
            )
            .persist(StorageLevel.MEMORY_AND_DISK)
        )
        rows, again, records = scan, None, None
        if any(map(has_own_numbers, items)):
            rows = with_numbers_of_files(scan)
        elif any(map(has_borders, items)):
            records, again = parts_read_again(scan, items, options, markup)
            rows = records
        documents = rows.where(F.col("reason").isNull())
        rejected = rows.where(F.col("reason").isNotNull()).select(REJECTED.names)
        for resolve_repeated in resolve:
            documents, repeated = resolve_repeated(documents)
            rejected = rejected.unionByName(repeated)
        registered = None
        if candidates is not None and candidates.files:
            text = F.when(F.col(TEXT_AT.name).isNull(), F.col("text"))
            rows = documents.withColumn("text", text).select(*RAW.names, TEXT_AT.name)
            registered = Registered(rows, candidates.files, candidates.columns)
        ingested = Ingested(
            documents=documents.select(*columns),
            rejected=rejected,
            scan=scan,
            again=again,
            records=records,
            empty=work_rows.num_rows == 0,
            of_many_records=of_many_records,
            registered=registered,
            rewritten=candidates.refused if candidates is not None else {},
            state=before.state if places else "",
            limit=limit,
            left_out=_left_out(places, patterns, exclude, count_excluded) if limit is None else {},
        )
        self._read.append(ingested)
        return ingested


def _repositories(paths: Paths, origin: Origin) -> list[Tree]:
    """Return the repositories in each of the folders `paths`, followed by the folder's own files."""
    trees = []
    for holder in folders(paths):
        if isinstance(holder, MatchingFiles):
            raise ConfigurationError(
                f"`{holder.display()}` matches files, and `repositories` reads folders of repositories. Name "
                "the folder."
            )
        for name in holder.children():
            if holder.kind(name) == "folder" and not holder.is_link(name):
                place = holder.below(name)
                trees.append(Tree(place, replace(named(origin, place), repository=place.name)))
        trees.append(Tree(holder, named(origin, holder), deep=False))
    return trees


def _licensed(tree: Tree) -> Tree:
    """Return a repository with the license that it declares, unless its dataset has one."""
    origin = tree.origin
    return replace(tree, origin=replace(origin, license=origin.license or license_of(tree.folder)))


def _left_out(
    places: Sequence[Place],
    patterns: Sequence[str],
    exclude: Patterns,
    count_excluded: Callable[[], Mapping[str, int]],
) -> Mapping[str, int]:
    globs = [exclude] if isinstance(exclude, str) else exclude
    others = endings_left_out(places, patterns, globs) if patterns else {}
    return Counter(others) + Counter(count_excluded())


def _markup(markup: Markup | None, repository: str | None) -> Markup:
    return markup or ("reject" if repository is None else "keep")


def _by_key(fields: Fields) -> list[Resolve]:
    return [first_of_each_key] if fields.key is not None else []
