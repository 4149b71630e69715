# SPDX-License-Identifier: Apache-2.0
"""``flavor:instance``: slots of the size of one of Nova's flavors.

The properties of the flavor are stored with the reservation as they were at
the request: the flavor may change in Nova, or be deleted, and no promise to
the reservation changes.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import pci_alias
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import DEFAULT_BEFORE_END
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import ON_START
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.request_group import RequestGroups
from blazar_sched.service.resources import slots
from blazar_sched.service.resources.parameters import check_integer
from blazar_sched.service.resources.parameters import check_names
from blazar_sched.service.resources.parameters import check_requirement

_DEFAULTS = {
    'flavor_id': None,
    'amount': None,
    'affinity': None,
    'resource_properties': '',
    BEFORE_END: DEFAULT_BEFORE_END,
    ON_START: '',
}


class FlavorResource(slots.SlotsResource):
    """The driver of ``flavor:instance``."""

    def _read(self, parameters: Mapping[str, Any], project_id: str) -> Slots:
        """Return the demand of a request, with all of the flavor.

        :raises InvalidInput: naming the parameter that is wrong
        """
        asked = _check(parameters)
        flavor = self._flavor(asked['flavor_id'], project_id)
        return _freeze(asked, flavor, *self._asked_of_placement(flavor))

    def _changed(
        self, demand: Demand, changes: Mapping[str, Any], project_id: str
    ) -> Slots:
        known = demand.of_kind(Slots)
        parameters = known.encode()
        asked = _check({
            **{k: v for k, v in parameters.items() if k in _DEFAULTS},
            'resource_properties': known.asked_properties,
            **changes,
        })
        flavor = known.size
        if asked['flavor_id'] != flavor.id:
            return self._read(asked, project_id)
        if not known.slot:
            # Blazar has stored the flavor only.
            return _freeze(asked, flavor, *self._asked_of_placement(flavor))
        # What was promised stays, whatever the aliases stand for by now.
        return _freeze(asked, flavor, known.slot, known.groups)

    def _flavor(self, flavor_id: Any, project_id: str) -> Flavor:
        """Return the ledger's copy of a flavor.

        :raises InvalidInput: if the project may not use the flavor, or if
            there is no such flavor
        """
        found = isinstance(flavor_id, str) and self._ledger.flavor(flavor_id)
        if not found or not found.is_open_to(project_id):
            raise exception.InvalidInput(
                f'flavor {str(flavor_id)[:64]!r} not found', field='flavor_id'
            )
        return found

    def _asked_of_placement(
        self, flavor: Flavor
    ) -> tuple[dict[str, int], RequestGroups | None]:
        """Return the amounts and the groups of a flavor: see `_freeze`.

        :raises InvalidInput: if the flavor cannot be reserved
        """
        self._check_aliases(flavor)
        extra_specs = pci_alias.expanded(flavor.extra_specs, self._aliases)
        amounts = _resources(flavor, extra_specs)
        return amounts, flavor_rules.own_groups(amounts, extra_specs)

    def _check_aliases(self, flavor: Flavor) -> None:
        """Refuse a flavor that asks for unknown PCI devices.

        Without any alias PCI devices are not in Placement, and no reservation
        keeps them.
        """
        for name, _ in pci_alias.names(flavor.extra_specs):
            if self._aliases and name not in self._aliases:
                raise exception.InvalidInput(
                    f'flavor {flavor.id!r} asks for PCI devices of alias '
                    f'{name!r}, which pci_alias does not have',
                    field='flavor_id',
                )


def _check(parameters: Mapping[str, Any]) -> dict[str, Any]:
    complete = check_names(parameters, _DEFAULTS)
    check_integer(complete, 'amount', 1)
    slots.check_affinity(complete)
    check_requirement(complete, 'resource_properties')
    return complete


def _freeze(
    asked: Mapping[str, Any], flavor: Flavor, amounts: Mapping[str, int],
    groups: RequestGroups | None,
) -> Slots:
    """Return the demand of a request, with all of the flavor.

    :param amounts: what an instance takes, by resource class
    :param groups: the request groups of a flavor with other classes than
        RESOURCE_CLASSES, which include the traits of the flavor; else None
    """
    required = flavor_rules.requirement(
        flavor.extra_specs, asked['resource_properties'],
        with_traits=groups is None,
    )
    # The properties that a server gets from its reservation must not also come
    # from the flavor.
    extra_specs = {
        name: value
        for name, value in flavor.extra_specs.items()
        if not name.startswith(flavor_rules.PREFIX)
    }
    return Slots(
        amounts, asked['amount'], asked['affinity'], required, groups,
        dataclasses.replace(
            flavor, extra_specs=extra_specs,
            projects=None if flavor.projects is None else (),
        ),
        asked['resource_properties'], asked[BEFORE_END], asked[ON_START],
    )


def _resources(
    flavor: Flavor, extra_specs: Mapping[str, str]
) -> dict[str, int]:
    asked = flavor_rules.resources(
        flavor.vcpus, flavor.memory_mb,
        flavor_rules.disk_gb(
            flavor.disk_gb, flavor.ephemeral_gb, flavor.swap_mb
        ),
        extra_specs,
    )
    if not asked or max(asked.values()) > ext.AMOUNT_LIMIT:
        raise exception.InvalidInput(
            f'flavor {flavor.id!r} requests no resources, or too many',
            field='flavor_id',
        )
    return asked
