# SPDX-License-Identifier: Apache-2.0
"""Checks of a reservation's parameters, for any resource type."""

from collections.abc import Mapping
from typing import Any

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import requirements


def check_names(
    parameters: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters with defaults filled in.

    :raises InvalidInput: if a parameter is unknown
    """
    for name in parameters:
        if name not in defaults:
            raise exception.InvalidInput(
                f'{name} is not a parameter of this resource type', field=name
            )
    return {**defaults, **parameters}


def check_integer(
    parameters: Mapping[str, Any], name: str, minimum: int
) -> None:
    """Refuse a parameter that is not an integer of at least `minimum`.

    :raises InvalidInput: naming the parameter
    """
    value = parameters[name]
    if type(value) is not int or not minimum <= value <= ext.AMOUNT_LIMIT:
        raise exception.InvalidInput(
            f'{name} must be an integer from {minimum} to '
            f'{ext.AMOUNT_LIMIT}',
            field=name,
        )


def check_requirement(parameters: Mapping[str, Any], name: str) -> None:
    """Refuse a parameter that is not a requirement.

    :raises InvalidInput: naming the parameter
    """
    if not isinstance(parameters[name], str):
        raise exception.InvalidInput(f'{name} must be text', field=name)
    requirements.parse(parameters[name], name)
