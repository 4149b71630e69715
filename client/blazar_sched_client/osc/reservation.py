# SPDX-License-Identifier: Apache-2.0
"""Reservations, as a user writes them."""

import argparse
import json
import re
from typing import Any

_PAIR = re.compile(r',(?=\w+=)')
# Values that are no text; the API reads numbers in a text itself.
_JSON = re.compile(r'\[.*\]|\{.*\}|true|false|null', re.DOTALL)
# Requirements are JSON in a text.
_REQUIREMENTS = ('hypervisor_properties', 'resource_properties')


def parse(text: str) -> dict[str, Any]:
    """Return the reservation of ``key=value,key=value``, or of JSON.

    :raises argparse.ArgumentTypeError: if the text has another form
    """
    try:
        if text.startswith('{'):
            whole: dict[str, Any] = json.loads(text)
            return whole
        return dict(_field(pair) for pair in _PAIR.split(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text}: must be key=value,key=value, or JSON'
        ) from None


def _field(pair: str) -> tuple[str, Any]:
    name, value = pair.split('=', 1)
    if name not in _REQUIREMENTS and _JSON.fullmatch(value):
        return name, json.loads(value)
    return name, value
