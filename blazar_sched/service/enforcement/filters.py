# SPDX-License-Identifier: Apache-2.0
"""The enabled filters, which are found by their entry points."""

from collections.abc import Iterable
import dataclasses
from typing import Any

from oslo_config import cfg
import stevedore

from blazar_sched.conf import enforcement as enforcement_conf
from blazar_sched.domain import exception
from blazar_sched.service import entry_points
from blazar_sched.service import parts
from blazar_sched.service.enforcement import base
from blazar_sched.service.enforcement.base import LeaseChange

NAMESPACE = 'blazar_sched.enforcement'


@dataclasses.dataclass(frozen=True, slots=True)
class Filters:
    """The enabled filters.

    :param strict: the filters whose refusals are final
    :param approval: the filters whose limits an administrator can lift
    """

    strict: list[base.Filter]
    approval: list[base.Filter]

    def check(self, change: LeaseChange, project: base.Project) -> str | None:
        """Refuse a lease, or return the refusals that are lifted, if any.

        :raises BlazarSchedError: the refusal of a filter
        """
        for f in self.strict:
            f.check(change, project)
        lifted = []
        for f in self.approval:
            try:
                f.check(change, project)
            except exception.LimitExceeded as e:
                if change.lifted:
                    lifted.append(str(e))
                else:
                    if change.current is None:
                        e.args = (
                            f'{e}; an administrator can approve a held offer '
                            'of the lease',
                        )
                    raise
        return '; '.join(lifted) or None


def load(conf: cfg.ConfigOpts) -> Filters:
    """Return the enabled filters.

    :raises ValueError: if there is no such filter, or it lacks an option
    :raises Exception: whatever a filter raises that cannot be imported
    """
    options = conf[enforcement_conf.GROUP]
    found: stevedore.NamedExtensionManager[Any]
    found = stevedore.NamedExtensionManager(
        NAMESPACE, options.enabled_filters, name_order=True,
        on_load_failure_callback=entry_points.refuse,
        on_missing_entrypoints_callback=_refuse_missing,
    )
    running = parts.running(conf)
    if away := [
        each.name for each in found
        if not parts.runs(each.entry_point.value, running)
    ]:
        _refuse_missing(away)
    own: dict[str, type[base.Filter]] = {}
    for of_part in parts.each('enforcement', 'FILTERS', running):
        own |= of_part
    known = {each.name for each in found.list_entry_points()}
    always = [
        filter_(conf) for name, filter_ in own.items() if name not in known
    ]
    filters = {
        each.name: own.get(each.name, each.plugin)(conf) for each in found
    }
    approval = []
    for name in dict.fromkeys(options.approval_filters):
        if name not in filters or filters[name].is_external:
            raise ValueError(
                f'[enforcement] approval_filters: {name} is not in '
                'enabled_filters, or queries another service'
            )
        approval.append(filters.pop(name))
    return Filters([*always, *filters.values()], approval)


def _refuse_missing(names: Iterable[str]) -> None:
    raise ValueError(
        f'[enforcement] enabled_filters: no filter {", ".join(names)} found'
    )
