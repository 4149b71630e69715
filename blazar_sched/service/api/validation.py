# SPDX-License-Identifier: Apache-2.0
"""Validation of request bodies by JSON Schema.

A schema may have its own text of a refusal, under ``x-refusal``, where the
message of the library is no help.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import jsonschema
from jsonschema import validators
from microversion_parse import Version

from blazar_sched.domain import exception
from blazar_sched.service.api import microversion

# The number of characters kept of a long message, at either end.
_HEAD, _TAIL = 100, 200

Schema = dict[str, Any]
Validator = jsonschema.protocols.Validator
ByVersion = Mapping[Version, Validator]


def _is_integer(checker: Any, value: Any) -> bool:
    # JSON Schema accepts 1.0 as an integer; the code below the API does not.
    return isinstance(value, int) and not isinstance(value, bool)


# validators.extend has no type annotations.
_extend: Any = validators.extend
_Strict = _extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', _is_integer
    ),
)


def by_version(schema: Callable[[Version], Schema]) -> ByVersion:
    """Build the validator for `check`, for each version of the API.

    `tests/unit/api/test_schemas.py` checks the schemas themselves. Checking
    them here would take a third of the time in which a process starts.
    """
    return {
        version: validator(schema(version)) for version in microversion.KNOWN
    }


def validator(schema: Schema) -> Validator:
    """Build the validator of a schema for `check`."""
    strict: Validator = _Strict(schema)
    return strict


def check(schema: Validator, document: Any) -> None:
    """Check that `document` matches `schema`.

    :raises InvalidInput: naming the field by its path, as in
        ``reservations[0].min``
    """
    error = next(schema.iter_errors(document), None)
    if error is None:
        return
    steps = list(error.absolute_path)
    rule: Any = error.schema
    instance: Any = error.instance
    message = rule.get('x-refusal', error.message)
    if error.validator == 'required':
        missing = next(
            n for n in rule['required'] if n not in instance
        )
        message = f'Missing parameter {missing}'
        steps.append(missing)
    elif 'propertyNames' in error.schema_path:
        steps.append(instance[:_HEAD])
    raise exception.InvalidInput(_short(message), field=_path(steps) or None)


def _short(message: str) -> str:
    if len(message) <= _HEAD + _TAIL:
        return message
    # The message begins with the value and ends with the error.
    return f'{message[:_HEAD]}…{message[-_TAIL:]}'


def _path(steps: Any) -> str:
    path = ''.join(
        f'[{step}]' if isinstance(step, int) else f'.{step}' for step in steps
    )
    return path.removeprefix('.')
