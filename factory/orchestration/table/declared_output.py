"""One table of an asset, as the asset declares it: its columns, layout, checks and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.orchestration.table.charts.registry import chart_of, figures_of
from factory.orchestration.table.checks import Check, checks_of
from factory.orchestration.table.declaration import Output


def declared_output(
    table: TableName,
    schema: TableSchema,
    checks: Sequence[Check],
    partitions_def: dg.PartitionsDefinition[str] | None,
) -> Output:
    """Return a table as an asset writes it; raises ConfigurationError for a check on an undeclared column."""
    output = Output(
        table,
        _laid_out(schema, partitions_def),
        checks_of(schema, checks),
        chart_of(table, schema),
        figures_of(table, schema),
    )
    _require_columns(output)
    return output


def _laid_out(schema: TableSchema, partitions_def: dg.PartitionsDefinition[str] | None) -> TableSchema:
    """The schema with a folder per partition, so that replacing one leaves the others' files alone."""
    if partitions_def is None:
        return schema
    return replace(schema, partition_by=("partition", *schema.partition_by))


def _require_columns(output: Output) -> None:
    for check in output.checks if not output.schema.is_open else ():
        for column in check.columns:
            if column not in output.schema.names:
                raise ConfigurationError(
                    f"Check `{check.name}` of {output.table} reads column `{column}`, which is not declared. "
                    f"Its columns are {', '.join(output.schema.names)}."
                )


def column_schema(schema: TableSchema) -> dg.TableSchema:
    """Return the columns as Dagster shows them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                field.name,
                str(field.type),
                description=schema.descriptions.get(field.name),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
            )
            for field in schema.columns
        ]
    )
