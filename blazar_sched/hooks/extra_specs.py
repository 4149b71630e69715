# SPDX-License-Identifier: Apache-2.0
"""Validators with which nova-api checks the extra specs of flavors.

For the entry points ``nova.api.extra_spec_validators``. Naming one extra spec
of a namespace claims the namespace: Nova refuses all other extra specs in it.
"""

from nova import exception as nova_exception
from nova.api.validation.extra_specs import base

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import flavor
from blazar_sched.domain.way import read_way
from blazar_sched.hooks import hints


class Duration(base.ExtraSpecValidator):
    """A validator of an extra spec that is a duration."""

    def validate(self, name: str, value: str) -> None:
        super().validate(name, value)
        try:
            duration.parse_duration(value, name)
        except exception.InvalidInput as e:
            raise nova_exception.ValidationError(str(e)) from e


class Way(base.ExtraSpecValidator):
    """A validator of an extra spec that says how servers are moved."""

    def validate(self, name: str, value: str) -> None:
        super().validate(name, value)
        if read_way(value) is None:
            raise nova_exception.ValidationError(
                f'{name} must be live, cold, true or false'
            )


def register() -> list[base.ExtraSpecValidator]:
    return [
        base.ExtraSpecValidator(
            name=flavor.RESERVATION,
            description='The reservation that servers of the flavor draw on. '
            'Set by the reservation service on the flavors that it makes.',
            value={'type': str, 'pattern': hints.RESERVATION_ID},
        ),
        Duration(
            name=flavor.LIFETIME,
            description='How long a server lives that declares no end: a '
            'duration like ``90s``, ``15m``, ``2h``, ``1d`` or ``1w``.',
            value={'type': str},
        ),
        base.ExtraSpecValidator(
            name=flavor.PREEMPTIBLE,
            description='Whether servers yield to reservations.',
            value={'type': bool},
        ),
        Way(
            name=flavor.MOVABLE,
            description='How servers are moved when a reservation needs their '
            'host, whatever their disks and devices are: ``live`` or '
            '``true``, ``cold``, or ``false``.',
            value={'type': str},
        ),
    ]
