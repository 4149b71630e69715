# SPDX-License-Identifier: Apache-2.0
"""``flavor:instance``: slots of the size of one of Nova's flavors.

The properties of the flavor are stored with the reservation as they were at
the request: the flavor may change in Nova, or be deleted, and no promise to
the reservation changes.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import json
from typing import Any

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import requirements
from blazar_sched.domain import reservation
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.resources import slots
from blazar_sched.service.resources.parameters import check_integer
from blazar_sched.service.resources.parameters import check_names
from blazar_sched.service.resources.parameters import check_requirement

_DEFAULTS = {
    'flavor_id': None,
    'amount': None,
    'affinity': None,
    'resource_properties': '',
    reservation.BEFORE_END: reservation.DEFAULT_BEFORE_END,
}
# The fields of a flavor that are stored beside its id, by the same names.
_KEPT = (
    'name', 'vcpus', 'memory_mb', 'disk_gb', 'ephemeral_gb', 'swap_mb',
    'extra_specs',
)  # fmt: skip
# The host properties that Nova's ComputeCapabilitiesFilter can match and that
# the ledger knows, and the operators of that filter.
_CAPABILITIES = ('hypervisor_type', 'hypervisor_version')
_OPERATORS = {
    '': '==', '==': '==', 's==': '==', '!=': '!=', 's!=': '!=',
    '=': '>=', '>=': '>=', '<=': '<=',
}  # fmt: skip


class FlavorResource(slots.SlotsResource):
    """The driver of ``flavor:instance``."""

    def _complete(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> dict[str, Any]:
        """Return the complete parameters, with all of the flavor.

        :raises InvalidInput: naming the parameter that is wrong
        """
        asked = _check(parameters)
        return _freeze(asked, self._flavor(asked['flavor_id'], project_id))

    def _changed(
        self,
        parameters: Mapping[str, Any],
        changes: Mapping[str, Any],
        project_id: str,
    ) -> dict[str, Any]:
        known = {name: parameters[name] for name in _DEFAULTS}
        known['resource_properties'] = parameters['asked_properties']
        asked = _check({**known, **changes})
        if asked['flavor_id'] != parameters['flavor_id']:
            return self._complete(asked, project_id)
        return _freeze(asked, _frozen(parameters))

    def _flavor(self, flavor_id: Any, project_id: str) -> Flavor:
        """Return the ledger's copy of a flavor.

        :raises InvalidInput: if the project may not use the flavor, or if
            there is no such flavor
        """
        found = isinstance(flavor_id, str) and self._ledger.flavor(flavor_id)
        if not found or not found.is_open_to(project_id):
            raise exception.InvalidInput(
                f'flavor {str(flavor_id)[:64]!r} not found',
                field='flavor_id',
            )
        return found


def _check(parameters: Mapping[str, Any]) -> dict[str, Any]:
    complete = check_names(parameters, _DEFAULTS)
    check_integer(complete, 'amount', 1)
    slots.check_affinity(complete)
    check_requirement(complete, 'resource_properties')
    return complete


def _freeze(
    asked: Mapping[str, Any], flavor: Flavor
) -> dict[str, Any]:
    """Return the requested parameters, with all of the flavor.

    `resource_properties` is the requirement for hosts of both the request and
    the flavor; `asked_properties` is the requirement of the request.
    """
    return {
        **asked,
        'resource_properties': _requirement(
            asked['resource_properties'], flavor
        ),
        'asked_properties': asked['resource_properties'],
        **{name: getattr(flavor, name) for name in _KEPT},
        # The properties that a server gets from its reservation must not also
        # come from the flavor.
        'extra_specs': {
            name: value
            for name, value in flavor.extra_specs.items()
            if not name.startswith(flavor_rules.PREFIX)
        },
        'resources': _resources(flavor),
    }


def _frozen(parameters: Mapping[str, Any]) -> Flavor:
    """Return the flavor as stored with the reservation."""
    return Flavor(
        parameters['flavor_id'], **{name: parameters[name] for name in _KEPT}
    )


def _resources(flavor: Flavor) -> dict[str, int]:
    asked = flavor_rules.resources(
        flavor.vcpus,
        flavor.memory_mb,
        flavor_rules.disk_gb(
            flavor.disk_gb, flavor.ephemeral_gb, flavor.swap_mb
        ),
        flavor.extra_specs,
    )
    if not asked or max(asked.values()) > ext.AMOUNT_LIMIT:
        raise exception.InvalidInput(
            f'flavor {flavor.id!r} requests no resources, or too many',
            field='flavor_id',
        )
    return asked


def _requirement(asked: str, flavor: Flavor) -> str:
    """Return the requirement for hosts, as JSON text."""
    required, forbidden = flavor_rules.traits(flavor.extra_specs)
    having = {
        name: json.dumps(['==', f'$trait:{name}', 'true'])
        for name in (*required, *forbidden)
    }
    parts = [having[name] for name in required]
    parts += [f'["not", {having[name]}]' for name in forbidden]
    parts += _capabilities(flavor)
    if not parts:
        return asked
    # Combined as text, so that no number in the request is reformatted.
    if json.loads(asked or '[]'):
        parts.append(asked)
    text = f'["and", {", ".join(parts)}]'
    requirements.parse(text, 'resource_properties')
    return text


def _capabilities(flavor: Flavor) -> Iterator[str]:
    """Yield the requirements of the extra specs ``capabilities:…``."""
    for name in _CAPABILITIES:
        text = flavor.extra_specs.get(f'capabilities:{name}')
        asked, _, value = (text or '').rpartition(' ')
        operator = _OPERATORS.get(asked.strip())
        if text is not None and operator is not None:
            yield json.dumps([operator, f'${name}', value])
