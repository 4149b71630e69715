# SPDX-License-Identifier: Apache-2.0
"""Flavors in SQL, which are copies of Nova's flavors."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


def _from_row(row: Any) -> Flavor:
    return Flavor(
        id=row.id, name=row.name, vcpus=row.vcpus, memory_mb=row.memory_mb,
        disk_gb=row.disk_gb, ephemeral_gb=row.ephemeral_gb,
        swap_mb=row.swap_mb, extra_specs=row.extra_specs,
        projects=None if row.projects is None else tuple(row.projects),
    )


def get(connection: sa.Connection, flavor_id: str) -> Flavor | None:
    """Return a flavor, None if there is no such flavor."""
    if not models.is_text(flavor_id):
        return None
    query = sa.select(models.Flavor).where(models.Flavor.id == flavor_id)
    for row in connection.execute(query):
        # MySQL ignores trailing blanks in comparisons.
        if row.id == flavor_id:
            return _from_row(row)
    return None


def list_(connection: sa.Connection) -> list[Flavor]:
    """Return all flavors."""
    return [_from_row(r) for r in connection.execute(sa.select(models.Flavor))]


def put(connection: sa.Connection, flavors: Iterable[Flavor]) -> None:
    """Replace all flavors by `flavors`, writing only the differences."""
    rows.replace(connection, models.Flavor, sa.true(), map(_to_row, flavors))


def _to_row(flavor: Flavor) -> dict[str, Any]:
    projects = None if flavor.projects is None else list(flavor.projects)
    return rows.columns(flavor, projects=projects)
