# SPDX-License-Identifier: Apache-2.0
"""Options whose values are JSON objects."""

from collections.abc import Callable
import json
from typing import Any

import jsonschema
from oslo_config import types

from blazar_sched.domain import exception
from blazar_sched.domain import requirements

MAX_INT = 2**31 - 1
# A line that each database can store.
LINE = {
    'type': 'string', 'maxLength': 255,
    'pattern': r'^[^\x00-\x1f\x7f\ud800-\udfff]+\Z',
}


class JsonObjects(types.MultiString):
    """JSON objects, each of which is read as a noun.

    :param schema: the fields of an object, which has no others
    :param read: returns the noun of valid fields
    """

    def __init__(
        self, noun: str, schema: dict[str, Any],
        read: Callable[[dict[str, Any]], object],
    ) -> None:
        super().__init__()
        self._noun = noun
        self._read = read
        self._validator = jsonschema.Draft202012Validator(
            {'type': 'object', 'additionalProperties': False, **schema}
        )

    def __call__(self, value: Any) -> Any:
        """Return the noun of a text; the default is read already.

        :returns: None for an empty text, as a sample of the option has it
        :raises ValueError: naming the field that is wrong
        """
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            fields = json.loads(
                value, parse_float=_number, parse_constant=_refuse
            )
            for error in self._validator.iter_errors(fields):
                raise ValueError(
                    ': '.join((*map(str, error.path), error.message))
                )
            return self._read(fields)
        except (ValueError, exception.InvalidInput) as e:
            raise ValueError(f'{value[:200]!r} is no {self._noun}: {e}') from e


def _number(text: str) -> float:
    """Return an integer for a text such as 1e3, as a schema takes it."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _refuse(constant: str) -> None:
    raise ValueError(f'{constant} is no number')


def requirement(properties: list[Any]) -> str:
    """Return a requirement as JSON text, '' for an empty one.

    :raises InvalidInput: if the requirement is wrong
    """
    text = json.dumps(properties) if properties else ''
    requirements.parse(text, 'resource_properties')
    return text
