# SPDX-License-Identifier: Apache-2.0
"""The view of a host."""

from typing import Any

from microversion_parse import Version

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.schemas.host import FIELDS


class _Host(Object):
    """A host, which has a key for each of its capabilities too."""

    def show(self, value: Item, version: Version) -> dict[str, Any]:
        return {**value['capabilities'], **super().show(value, version)}

    def example(self, version: Version, value: Any = None) -> dict[str, Any]:
        return {'gpu': 'true', **super().example(version)}


HOST = _Host(
    *FIELDS, name='Host', meaning='A compute host registered as reservable',
    more=described(meaning.CAPABILITY, {'type': 'string'}),
)
