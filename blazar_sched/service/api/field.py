# SPDX-License-Identifier: Apache-2.0
"""Fields of the API's objects: view, JSON Schema and example in one table.

An object of the API, such as a host, is an `Object` with one `Field` for each
field. The manager returns an item, a dict with names and values of its own;
the view of the item in a version of the API, the JSON Schema of that view and
an example of it are all made from the fields.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any

from microversion_parse import Version

from blazar_sched.service.api import microversion
from blazar_sched.service.api.validation import Schema

Item = Mapping[str, Any]


class Type:
    """The type of a value that is shown as the manager returns it."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def schema(self, version: Version) -> Schema:
        """Describe the values that `show` returns."""
        return self._schema

    def show(self, value: Any, version: Version) -> Any:
        """Return a value of the manager in the form of a version."""
        return value

    def example(self, version: Version, value: Any = None) -> Any:
        """Return an example in the form of a version.

        :param value: an example of the manager's value, not used if the type
            has fields with examples
        """
        return self.show(value, version)


TEXT = Type({'type': 'string'})
TEXT_OR_NULL = Type({'type': ['string', 'null']})
INTEGER = Type({'type': 'integer'})
INTEGER_OR_NULL = Type({'type': ['integer', 'null']})
# The greatest amount that fits the index, whose amounts have 32 bits.
MAX_COUNT = 2**31 - 1
COUNT = Type({'type': 'integer', 'minimum': 1, 'maximum': MAX_COUNT})
BOOLEAN = Type({'type': 'boolean'})
NULL = Type({'type': 'null'})


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field of an object.

    :param name: the name in the API
    :param meaning: the description in the document
    :param example: an example of the manager's value
    :param type: the type of the value
    :param get: returns the value of an item, by default the item's value of
        the same name
    :param since: the first version that has the field
    :param required: whether every view has the field; a field that is not
        required is left out of a view if the value is None
    """

    name: str
    meaning: str
    example: Any = None
    type: Type = TEXT
    get: Callable[[Item], Any] | None = None
    since: Version = microversion.V1_0
    required: bool = True

    def value(self, item: Item) -> Any:
        if self.get is not None:
            return self.get(item)
        # A manager of an older version does not send a newer field.
        is_oldest = self.since == microversion.V1_0
        return item[self.name] if is_oldest else item.get(self.name)


def of_version(fields: Iterable[Field], version: Version) -> list[Field]:
    """Return the fields of a version.

    Of several fields with one name, the last field replaces the others.
    """
    return list({f.name: f for f in fields if version >= f.since}.values())


def properties(fields: Iterable[Field], version: Version) -> dict[str, Schema]:
    """Describe the fields of a version, by name."""
    return {
        field.name: described(field.meaning, field.type.schema(version))
        for field in of_version(fields, version)
    }


class Object(Type):
    """An object with the given fields.

    :param name: the name of the object in the document, if any
    :param meaning: the description of an object with a name
    :param more: the schema of further fields, False if there are none
    :param columns: the fields that a client shows in a list, by default all
    """

    def __init__(
        self, *fields: Field, name: str = '', meaning: str = '',
        more: Schema | bool = False, columns: Iterable[str] = (),
    ) -> None:
        self.name = name
        self._fields = {
            version: of_version(fields, version)
            for version in microversion.KNOWN
        }
        self._meaning = meaning
        self._more = more
        self._columns = [*columns]

    def schema(self, version: Version) -> Schema:
        fields = self._fields[version]
        required = [f.name for f in fields if f.required]
        return {
            'type': 'object',
            **({'required': required} if required else {}),
            'properties': properties(fields, version),
            'additionalProperties': self._more,
        }

    def show(self, value: Item, version: Version) -> dict[str, Any]:
        shown = {}
        for field in self._fields[version]:
            found = field.value(value)
            if found is not None or field.required:
                shown[field.name] = field.type.show(found, version)
        return shown

    def example(self, version: Version, value: Any = None) -> dict[str, Any]:
        return {
            field.name: field.type.example(version, field.example)
            for field in self._fields[version]
            if field.example is not None or field.required
        }

    def noun(self, version: Version) -> Schema:
        """Describe the object under a name in the document."""
        return {
            **self.schema(version),
            'description': self._meaning,
            'examples': [self.example(version)],
            **({'x-columns': self._columns} if self._columns else {}),
        }


class Many(Type):
    """A list of items of one type."""

    def __init__(self, item: Type) -> None:
        self._item = item

    def schema(self, version: Version) -> Schema:
        return many(self._item.schema(version))

    def show(self, value: Iterable[Any], version: Version) -> list[Any]:
        return [self._item.show(each, version) for each in value]

    def example(self, version: Version, value: Any = None) -> list[Any]:
        if value is None:
            return [self._item.example(version)]
        return self.show(value, version)


def whole(fields: dict[str, Schema]) -> Schema:
    """Describe an object that has all of `fields`, and no other."""
    return {
        'type': 'object',
        'required': list(fields),
        'properties': fields,
        'additionalProperties': False,
    }


def many(item: Schema) -> Schema:
    """Describe a list of items."""
    return {'type': 'array', 'items': item}


def described(meaning: str, schema: Schema) -> Schema:
    """Return `schema` with `meaning` before the description that it has."""
    form = schema.get('description')
    return {**schema, 'description': f'{meaning}; {form}' if form else meaning}
