# SPDX-License-Identifier: Apache-2.0
"""PCI aliases: the devices that a flavor asks for by name.

nova.conf says in ``[pci] alias`` what a name stands for. Where Nova reports
PCI devices in Placement, it asks Placement for one group of one unit for each
device of ``pci_passthrough:alias``. The functions of this module do the same.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import json
import types
from typing import Any

import os_resource_classes as orc
import os_traits

EXTRA_SPEC = 'pci_passthrough:alias'
# The most devices of an alias that are counted: more than a host has.
_MAX_DEVICES = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Alias:
    """What an alias stands for: a resource class, and required traits."""

    resource_class: str
    traits: tuple[str, ...] = ()


Aliases = Mapping[str, Alias]
NO_ALIASES: Aliases = types.MappingProxyType({})


def read(lines: Iterable[str]) -> dict[str, Alias]:
    """Return the aliases by name, from the values of ``[pci] alias``.

    :param lines: JSON objects, as in nova.conf
    :raises ValueError: if a value is not such an object, or if two values
        have the same name, which Nova does not support in Placement
    """
    aliases: dict[str, Alias] = {}
    for line in lines:
        try:
            shown = json.loads(line)
            name = shown['name'].strip()
            alias = _alias(shown)
        except (AttributeError, KeyError, TypeError, ValueError) as e:
            raise ValueError(f'not a PCI alias: {line[:200]}') from e
        if name in aliases:
            raise ValueError(
                f'PCI alias {name!r} has more than one value, which Nova '
                'refuses if PCI devices are in Placement'
            )
        aliases[name] = alias
    return aliases


def names(extra_specs: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the (name, count) of the aliases that a flavor asks for.

    A part that Nova cannot read is left out: Nova refuses such a flavor.
    """
    for part in extra_specs.get(EXTRA_SPEC, '').split(','):
        name, _, count = part.partition(':')
        if name.strip() and count.strip().isdecimal():
            yield name.strip(), int(count)


def expanded(
    extra_specs: Mapping[str, str], aliases: Aliases
) -> Mapping[str, str]:
    """Return extra specs with a request group for each device of an alias.

    An alias that is not in `aliases` adds nothing.
    """
    if EXTRA_SPEC not in extra_specs:
        return extra_specs
    groups: dict[str, str] = {}
    for name, count in names(extra_specs):
        alias = aliases.get(name)
        if alias is None:
            continue
        for _ in range(min(count, _MAX_DEVICES)):
            groups |= _group(f'_PCI_{len(groups)}', alias)
    return {**extra_specs, **groups}


def _group(suffix: str, alias: Alias) -> dict[str, str]:
    return {
        f'resources{suffix}:{alias.resource_class}': '1',
        **{f'trait{suffix}:{name}': 'required' for name in alias.traits},
    }


def _alias(shown: Mapping[str, Any]) -> Alias:
    asked = (shown.get('resource_class') or '').upper()
    if not asked:
        vendor, product = shown['vendor_id'], shown['product_id']
        asked = f'CUSTOM_PCI_{vendor}_{product}'.upper()
    elif asked not in orc.STANDARDS and not orc.is_custom(asked):
        asked = orc.normalize_name(asked)
    return Alias(asked, tuple(sorted(_traits(shown.get('traits') or ''))))


def _traits(text: str) -> set[str]:
    """Return traits as Nova makes them: blanks become part of the names."""
    standard, others = os_traits.check_traits(text.split(',') if text else ())
    return {
        *standard,
        *(
            name if os_traits.is_custom(name)
            else os_traits.normalize_name(name)
            for name in map(str.upper, others)
        ),
    }
