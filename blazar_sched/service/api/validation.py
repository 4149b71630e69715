# SPDX-License-Identifier: Apache-2.0
"""Holds request bodies to their JSON Schema.

A schema may say itself why it refuses, under ``x-refusal``, where what the
library says is no help.
"""

from collections.abc import Callable
from typing import Any

import jsonschema
from jsonschema import validators
import microversion_parse

from blazar_sched.domain import exception
from blazar_sched.service.api import microversion

# Characters of a long message that are kept, at either end.
_HEAD, _TAIL = 100, 200

Schema = dict[str, Any]


def _is_integer(checker: Any, value: Any) -> bool:
    # JSON Schema calls 1.0 an integer; nothing below the API does.
    return isinstance(value, int) and not isinstance(value, bool)


# The function has no types.
_extend: Any = validators.extend
_Strict = _extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', _is_integer
    ),
)


def validator(schema: Schema) -> jsonschema.protocols.Validator:
    """Build what `check` wants, once a schema."""
    _Strict.check_schema(schema)
    strict: jsonschema.protocols.Validator = _Strict(schema)
    return strict


def by_version(
    schema: Callable[[microversion_parse.Version], Schema],
) -> dict[microversion_parse.Version, jsonschema.protocols.Validator]:
    """Build what `check` wants for each version of the API."""
    return {
        version: validator(schema(version))
        for version in microversion.KNOWN
    }


def check(
    schema: jsonschema.protocols.Validator, document: Any
) -> None:
    """Pass if `document` is what `schema` describes.

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
    # The value stands first, what is wrong with it last.
    return f'{message[:_HEAD]}…{message[-_TAIL:]}'


def _path(steps: Any) -> str:
    path = ''.join(
        f'[{step}]' if isinstance(step, int) else f'.{step}' for step in steps
    )
    return path.removeprefix('.')
