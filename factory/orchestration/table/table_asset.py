"""`@table_asset`: a function that returns a DataFrame, declared as a table of the lake.

    @table_asset(namespace="filtered", asset_group="web", schema=FILTERED)
    def web(context, signals_web: DataFrame) -> DataFrame:
        return decide(signals_web, RULES)

    @table_asset(namespace="raw", asset_group="code", schema=RAW, side_tables={"rejected": REJECTED})
    def sources(context, ingests) -> Ingested:
        return ingests.files("checkouts", include="**/*.py")

A function may take `context`, `pyspark`, `ingests`, `partition` and `previous`. Every other argument is an
upstream table (`signals_web` means `signals.web`) and arrives as a lazy DataFrame pinned to its snapshot.
`previous` is the table as the same code and configuration last wrote it, if the run keeps unchanged tables;
otherwise it is None. With `partitions_def` the function makes the one partition that `partition` names. An
upstream table with the same partitions arrives as the rows of that partition, any other as a whole. The rows
that the function returns are written to an audit branch, checked there and published; only then does Dagster
record a materialization (`factory.orchestration.table.publication`). `source_function` returns the
undecorated function.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.errors import ConfigurationError, FactoryError
from factory.ingest.state import total_bytes
from factory.lake.names import INGEST, OWN, TableName
from factory.lake.schemas.base import TableSchema
from factory.lake_spark.read import read_at
from factory.orchestration.groups import diagnostics
from factory.orchestration.host.input_size import SourceBytes, declare_source
from factory.orchestration.host.resources import PRIORITY_TAG, LakeRun
from factory.orchestration.keys import key_of
from factory.orchestration.table import code_version as code
from factory.orchestration.table.checks import Check
from factory.orchestration.table.configuration import Config, plain, values
from factory.orchestration.table.damaged_input import damaged_input
from factory.orchestration.table.declaration import (
    AssetResult,
    Declaration,
    FilesOf,
    OnDemand,
    PartitionSelection,
)
from factory.orchestration.table.declared_output import column_schema, declared_output
from factory.orchestration.table.publication import materialize
from factory.orchestration.table.reuse import made_alike
from factory.orchestration.table.spark_failure import (
    JVM_DIED,
    WORKER_DIED,
    explained,
    failed_reading_parquet,
)
from factory.spark.session import ROWS_PER_ARROW_BATCH, batches_of

GIVEN = ("context", "pyspark", "ingests", "partition", "previous")
_DECLARED: dict[dg.AssetKey, tuple[Callable[..., AssetResult], Declaration]] = {}


def table_asset(
    *,
    namespace: str,
    schema: TableSchema,
    asset_group: str,
    graph_group: str | None = None,
    name: str | None = None,
    side_tables: Mapping[str, TableSchema] | None = None,
    upstream: Mapping[str, TableName] | None = None,
    checks: Sequence[Check] = (),
    config: Config = None,
    files: FilesOf | None = None,
    input_bytes: Callable[[], int] | None = None,
    description: str | None = None,
    owners: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    backfill_policy: dg.BackfillPolicy | None = None,
    priority: int = 0,
    growth: float = 1,
    lasting: bool = False,
    until: Sequence[TableName] = (),
    on_demand: OnDemand | None = None,
    rows_per_batch: int = ROWS_PER_ARROW_BATCH,
) -> Callable[[Callable[..., AssetResult]], dg.AssetsDefinition]:
    """Declare the decorated function as the asset of a table.

    `asset_group` is the dataset, variant, dedup group or models that the table belongs to; `graph_group` is
    its group in Dagster's graph if that is another one (`factory.orchestration.groups`). `name` defaults to
    the function's name; `side_tables` declares further tables written with it, by suffix; `upstream` maps
    arguments to tables that their names do not spell; `checks` run in addition to the uniqueness check of the
    key; `config` holds all other inputs that decide the rows: not code, files or upstream tables. `files`
    returns the files and folders that the function reads, for a partition if the table has any: a run that
    keeps unchanged tables keeps this one while their names, sizes and times are the same. Without `files` it
    reads a source every time; `input_bytes` then returns the size of its input, so that the run can choose
    its JVM. The description defaults to the function's docstring; `owners` are mail addresses and
    `team:name`s. With `partitions_def` a run replaces partitions of the table; a backfill is a single run
    unless `backfill_policy` says otherwise. Among runnable assets, the highest `priority` runs first. With a
    `growth` above one, a run that keeps unchanged tables keeps this one until its upstream rows have grown or
    shrunk by that factor. A `lasting` table is written again only if `config` changed, or by a run that
    selects it without any of its upstream tables, or if one of the upstream tables `until` changed.
    `on_demand` says when a run makes a table that only people read (`OnDemand`). `rows_per_batch` is the size
    of the Arrow batches that Spark sends to Python; rows without texts can have larger ones.

    Raises ConfigurationError at decoration for a wrong table name, a check on an undeclared column, or an
    argument `partition` of an asset without partitions.
    """

    def declare(function: Callable[..., AssetResult]) -> dg.AssetsDefinition:
        table = TableName(namespace, name or function.__name__)
        _require_partitions(function, partitions_def)
        about = description or inspect.getdoc(function)
        if on_demand is not None:
            about = f"{about} Only people read it: it is {on_demand.condition}, or if it is selected by name."
        outputs = [
            declared_output(table.suffixed(suffix), side_schema, (), partitions_def)
            for suffix, side_schema in (side_tables or {}).items()
        ]
        outputs.append(declared_output(table, schema, checks, partitions_def))
        declaration = Declaration(
            table=table,
            group=asset_group,
            outputs=tuple(outputs),
            upstream=_upstream(function, upstream or {}),
            code_version=code.code_version(function, table.stage, [output.schema for output in outputs]),
            code=code.parts(function, table.stage, {output.table: output.schema for output in outputs}),
            config=_config_hash(config),
            values=values(config),
            files=files,
            growth=growth,
            lasting=lasting,
            until=frozenset(until),
            on_demand=on_demand,
            rows_per_batch=rows_per_batch,
        )
        specs = [
            dg.AssetSpec(
                key=key_of(output.table),
                deps=[key_of(upstream_table) for upstream_table in declaration.upstream.values()],
                group_name=(graph_group or asset_group)
                if output.table == table
                else diagnostics(asset_group),
                description=about
                if output.table == table
                else f"{output.schema.about} Written with {table}.".strip(),
                owners=owners,
                kinds={"spark", "iceberg", output.table.stage},
                code_version=declaration.code_version,
                tags={"stage": table.stage},
                skippable=on_demand is not None,
                metadata={
                    "dagster/table_name": str(output.table),
                    "dagster/column_schema": column_schema(output.schema),
                },
            )
            for output in outputs
        ]
        _DECLARED[key_of(table)] = function, declaration
        if table.stage in (INGEST, OWN) and not declaration.upstream:
            declare_source(key_of(table), _source_bytes(files, input_bytes))
        return dg.multi_asset(
            name=f"{table.namespace}__{table.name}",
            specs=specs,
            ins={
                argument: dg.AssetIn(key=key_of(of), input_manager_key="tables")
                for argument, of in declaration.upstream.items()
            },
            check_specs=[
                dg.AssetCheckSpec(
                    name=check.name,
                    asset=key_of(output.table),
                    description=check.description,
                    blocking=check.blocking,
                )
                for output in outputs
                for check in output.checks
            ],
            # Dagster requires the results of checks even of a table that a run may skip, except of a subset.
            can_subset=on_demand is not None,
            required_resource_keys={"lake", "pyspark", *({"ingests"} & set(_given(function)))},
            retry_policy=dg.RetryPolicy(max_retries=1),
            partitions_def=partitions_def,
            # One run of many partitions publishes once; a run for each would start Spark for each.
            backfill_policy=(backfill_policy or dg.BackfillPolicy.single_run()) if partitions_def else None,
            op_tags={PRIORITY_TAG: str(priority)} if priority else None,
        )(_compute(function, declaration))

    return declare


def _source_bytes(files: FilesOf | None, input_bytes: Callable[[], int] | None) -> SourceBytes:
    """Return the function that measures the input of a source."""

    def source_bytes(partition: str | None) -> int | None:
        if files is not None:
            return total_bytes(files(partition))
        return None if input_bytes is None else input_bytes()

    return source_bytes


def source_function(asset: dg.AssetsDefinition) -> Callable[..., AssetResult]:
    """The function an asset was declared with, for tests that give it plain DataFrames."""
    return next(_DECLARED[key][0] for key in asset.keys if key in _DECLARED)


def declaration_of(asset: dg.AssetsDefinition) -> Declaration:
    """Return the declaration of an asset."""
    return next(_DECLARED[key][1] for key in asset.keys if key in _DECLARED)


def copartitioned(
    declared: Declaration,
    own: dg.PartitionsDefinition[str] | None,
    partitions_of: Callable[[dg.AssetKey], dg.PartitionsDefinition[str] | None],
) -> frozenset[TableName]:
    """Return the upstream tables with the partitions `own`."""
    tables = declared.upstream.values()
    return frozenset(table for table in tables if own is not None and partitions_of(key_of(table)) == own)


def _given(function: Callable[..., AssetResult]) -> list[str]:
    """Return the arguments that are not upstream tables."""
    return [argument for argument in inspect.signature(function).parameters if argument in GIVEN]


def _compute(function: Callable[..., AssetResult], declaration: Declaration) -> Callable[..., Iterator[Any]]:
    """Return the function that Dagster calls in a run: it calls `function` and publishes its rows."""
    given = _given(function)

    def compute(context: dg.AssetExecutionContext, **upstream: DataFrame) -> Iterator[Any]:
        offered = {
            "context": context,
            "pyspark": context.resources.pyspark,
            "ingests": getattr(context.resources, "ingests", None),
            "previous": _previous(context, declaration) if "previous" in given else None,
        }
        parts = _parts(context, declaration)

        def rows(key: str | None) -> AssetResult:
            arguments = {argument: (offered | {"partition": key})[argument] for argument in given}
            for argument, frame in upstream.items():
                of_key = key is not None and declaration.upstream[argument] in parts.copartitioned
                arguments[argument] = frame.where(F.col("partition") == key) if of_key else frame
            with batches_of(context.resources.pyspark.spark_session, declaration.rows_per_batch):
                return function(**arguments)

        try:
            yield from materialize(context, declaration, rows, parts)
        except FactoryError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        except Exception as error:
            failure = explained(error)
            if failure is None:
                raise
            if failed_reading_parquet(error):
                failure = damaged_input(context.resources.lake, declaration.upstream.values()) or failure
            failure.__cause__ = error
            sentence = str(failure)
            # A query fails again, and a JVM that died stays dead; a worker may live the next time.
            final = sentence == JVM_DIED or (isinstance(error, CapturedException) and sentence != WORKER_DIED)
            raise dg.Failure(description=sentence, allow_retries=not final) from failure

    # Dagster reads the parameters of the function it is given: the context, then the upstream tables.
    parameters = [
        inspect.Parameter(argument, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for argument in ("context", *declaration.upstream)
    ]
    compute.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    compute.__annotations__ = {}
    return compute


def _previous(context: dg.AssetExecutionContext, declaration: Declaration) -> DataFrame | None:
    """The published table, if its rows may be reused."""
    run: LakeRun = context.resources.lake
    published = made_alike(run.lake, declaration) if run.reuse else None
    if published is None:
        return None
    return read_at(context.resources.pyspark.spark_session, published.table, published.snapshot_id)


def _parts(context: dg.AssetExecutionContext, declaration: Declaration) -> PartitionSelection:
    """The partitions of the asset in this run, and the upstream tables with the same partitions."""
    own = context.assets_def.partitions_def
    if own is None:
        return PartitionSelection()
    graph = context.job_def.asset_layer
    shared = copartitioned(declaration, own, lambda key: graph.get(key).partitions_def)
    keys = tuple(context.partition_keys)
    has = own.get_partition_keys(dynamic_partitions_store=context.instance)
    return PartitionSelection(keys, shared, every=set(keys) >= set(has))


def _upstream(function: Callable[..., Any], named: Mapping[str, TableName]) -> dict[str, TableName]:
    """The upstream table of each argument; `**` takes the remaining tables of `named`."""
    parameters = inspect.signature(function).parameters
    plain = [
        argument
        for argument, parameter in parameters.items()
        if argument not in GIVEN and parameter.kind is not parameter.VAR_KEYWORD
    ]
    extra = [argument for argument in named if argument not in plain]
    if extra and len(plain) + len(set(parameters) & set(GIVEN)) == len(parameters):
        raise ConfigurationError(
            f"`upstream` names `{extra[0]}`, which is not an argument of {function.__name__}. "
            f"Its arguments are {', '.join(plain) or 'none'}."
        )
    return {
        argument: named.get(argument) or TableName.from_argument(argument) for argument in (*plain, *extra)
    }


def _require_partitions(
    function: Callable[..., Any], partitions_def: dg.PartitionsDefinition[str] | None
) -> None:
    if partitions_def is None and "partition" in inspect.signature(function).parameters:
        raise ConfigurationError(
            f"{function.__name__} takes a `partition` and is declared without partitions. "
            "Give `partitions_def`, or drop the argument."
        )


def _config_hash(config: Config) -> str:
    if config is None:
        return ""
    return hashlib.sha256(json.dumps(plain(config), sort_keys=True).encode()).hexdigest()[:16]
