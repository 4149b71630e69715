# SPDX-License-Identifier: Apache-2.0
"""Write the client's resources and methods from the OpenAPI document.

    python client/generate.py [FILE]

The document is of the parts that are installed, and the file by default that
of the client. The client has by hand what is not said of a noun.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import pathlib
import re
import sys
import textwrap
from typing import Any

from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi
from blazar_sched.service.api import routes

FILE = pathlib.Path(__file__).with_name('blazar_sched_client') / 'resources.py'
HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""The resources of the service, and the methods that all nouns have.

Made by ``client/generate.py`` from the OpenAPI document of the service.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from blazar_sched_client import _base
from blazar_sched_client._base import body
from blazar_sched_client._base import header
from blazar_sched_client._base import Resource
from blazar_sched_client._base import uri
'''
# The fields by which objects without a name are found by name.
FOUND_BY = {'FloatingIP': 'floating_ip_address', 'Host': 'hypervisor_hostname'}
# Fields whose names are Python's, or those of a resource of the SDK.
RENAMED = {
    'from': 'change_from', 'except': 'except_dates', 'property': 'name',
    'values': 'property_values',
}
# The methods that the client has by hand.
BY_HAND = {'update_offer'}
ALLOWED = {
    'post': 'create', 'get': 'fetch', 'put': 'commit', 'patch': 'commit',
    'delete': 'delete', 'list': 'list',
}
TYPES = {
    'string': 'str', 'integer': 'int', 'number': 'float', 'boolean': 'bool',
    'object': 'dict[str, Any]', 'null': 'None',
}
# What the SDK converts values to, except None.
CONVERTED = {'int', 'float', 'bool', 'list', 'dict'}
FORMS = {'lease-time': 'time', 'lease-duration': 'duration'}

Schema = dict[str, Any]


class Noun:
    """A kind of objects in the document, with the operations on it."""

    def __init__(self, name: str, schema: Schema) -> None:
        self.name = name
        self.schema = schema
        self.shown: Schema = schema['properties']
        self.required = set(schema.get('required', ()))
        # The key of an object in an answer, and under True that of a list.
        self.keys: dict[bool, str] = {}
        self.path = ''
        # By method, and the operation that lists the objects as `list`.
        self.operations: dict[str, Schema] = {}
        words = re.findall('[A-Z]+(?![a-z])|[A-Z][a-z]+', name)
        self.one = '_'.join(words).lower()
        self.words = ' '.join(w if w.isupper() else w.lower() for w in words)

    @property
    def many(self) -> str:
        """Return the name of the method that lists the objects."""
        if self.keys.get(True) == self.one:
            return self.one
        return re.sub('y$', 'ie', self.one) + 's'

    @property
    def has_methods(self) -> bool:
        return True in self.keys and '%' not in self.path

    def asked(self, *methods: str) -> Schema:
        """Return the fields that the bodies of requests can have."""
        found: Schema = {}
        for operation in map(self.operations.get, methods):
            if operation and 'requestBody' in operation:
                content = operation['requestBody']['content'][openapi.JSON]
                found = content['schema']['properties'] | found
        return {k: v for k, v in found.items() if v.get('not') != {}}

    def parameters(self, method: str, place: str = 'query') -> Schema:
        return {
            each['name']: {**each['schema'], 'description': description}
            for each in self.operations.get(method, {}).get('parameters', ())
            if each.get('in') == place
            for description in [each['description']]
        }

    def has_id(self, method: str) -> bool:
        """Tell whether the path of an operation ends with an id."""
        return bool(self.operations.get(method, {}).get('x-has-id'))


def nouns(document: openapi.Document) -> list[Noun]:
    """Return the nouns of the document, by name."""
    schemas = document['components']['schemas']
    found = {
        name: Noun(name, schema) for name, schema in sorted(schemas.items())
        if not name.startswith('Listed') and name not in ('Error', 'Version')
    }
    for path, operations in document['paths'].items():
        for method, operation in operations.items():
            if path.startswith('/v1/'):
                _assign(found, path.removeprefix('/v1'), method, operation)
    listed = {each.keys.get(True): each for each in found.values()}
    for search in found.values():
        for name, field in search.shown.items():
            if not search.keys and name in listed:
                # The search shows more of an object than the object's list.
                noun = listed[name]
                noun.shown = noun.shown | field['items']['properties']
                noun.required.update(noun.shown)
                field['items'] = noun
    return [*found.values()]


def _assign(
    found: dict[str, Noun], path: str, method: str, operation: Schema
) -> None:
    """Give an operation to the noun that the operation answers with."""
    one = re.sub(r'/{\w+}$', '', path)
    base = re.sub(r'{(\w+)}', r'%(\1)s', one)
    operation['x-has-id'] = one != path
    if method == 'delete':
        [noun] = [n for n in found.values() if n.path == base and n.keys]
        noun.operations[method] = operation
        return
    [answer] = [v for k, v in operation['responses'].items() if k[0] == '2']
    schema = answer['content'][openapi.JSON]['schema']
    for key, each in ({'': schema} | schema.get('properties', {})).items():
        is_list = 'items' in each
        reference = (each['items'] if is_list else each).get('$ref', '')
        name = reference.rpartition('/')[2].removeprefix('Listed')
        if name in found:
            noun = found[name]
            noun.path = base
            noun.operations['list' if is_list else method] = operation
            if key:
                noun.keys[is_list] = key


def module(document: openapi.Document) -> str:
    """Return the module of a document."""
    found = nouns(document)
    registry = _filled(', '.join(
        f'{each.one!r}: {each.name}' for each in found
        if True in each.keys or each.keys and '%' not in each.path
    ), 8)
    return '\n\n\n'.join((
        HEAD.rstrip(),
        *('\n'.join((*_head(n), *_lists(n), '', *_fields(n))) for n in found),
        'class Nouns(_base.Proxy):\n'
        '    """What can be done with nouns."""\n\n'
        f'    _resource_registry = {{\n{registry},\n    }}\n'
        + '\n'.join(
            line for each in found if each.has_methods
            for line in _methods(each)
        ) + '\n',
    ))


def _head(noun: Noun) -> Iterator[str]:
    """Yield how a resource is asked for."""
    waits = 'wait_for' in noun.parameters('get')
    yield f'class {noun.name}({"_base.Waited" if waits else "Resource"}):'
    yield f'    """{_sentence(noun.schema["description"])}"""'
    keys = ['resources_key' if each else 'resource_key' for each in noun.keys]
    if keys:
        values = ', '.join(map(repr, noun.keys.values()))
        yield f'    {", ".join(keys)} = {values}'
    yield f'    base_path = {noun.path!r}'
    allowed = [*dict.fromkeys(ALLOWED[each] for each in noun.operations)]
    for some in filter(None, (allowed[:4], allowed[4:])):
        yield f'    {"".join(f"allow_{each} = " for each in some)}True'
    if 'patch' in noun.operations:
        yield "    commit_method = 'PATCH'"
    if 'put' in noun.operations and not noun.has_id('put'):
        yield '    requires_id = False'
    if noun.schema['additionalProperties']:
        yield '    _store_unknown_attrs_as_properties = True'


def _lists(noun: Noun) -> Iterator[str]:
    """Yield what commands show and ask."""
    if noun.has_methods:
        yield f'    _noun, _nouns = {noun.one!r}, {noun.many!r}'
    columns = noun.schema.get('x-columns', [])
    if [*noun.operations] == ['list']:
        columns = columns or [*noun.shown]
    view = noun.schema['properties']
    yield from _names('_columns', columns)
    if columns:
        yield from _names('_hidden', (
            RENAMED.get(each, each) for each in _names_of(noun)
            if each not in view
        ))
    for name, method in (('_created', 'post'), ('_changed', 'put')):
        asked = [RENAMED.get(each, each) for each in noun.asked(method)]
        if asked and (columns or not noun.keys):
            if 'dry_run' in noun.parameters(method):
                asked.append('dry_run')
            if 'Idempotency-Key' in noun.parameters(method, 'header'):
                asked.append('idempotency_key')
            yield from _names(name, asked)
    yield from _query(noun)


def _query(noun: Noun) -> Iterator[str]:
    """Yield the parameters of a list, or of what has no id."""
    method = 'list' if 'list' in noun.operations else 'get'
    query = noun.parameters(method)
    if not query or noun.has_id(method):
        return
    if method == 'get' and '%' in noun.path:
        return
    if method == 'list' and 'marker' in query:
        yield '    _paginated = True'
    yield '    _query = {'
    for name, schema in query.items():
        if name not in ('limit', 'marker'):
            kind = TYPES.get(schema.get('type', ''), '')
            more = [kind] if kind in ('bool', 'int') else []
            yield from _field(f'        {name!r}: ', schema, more, ',', True)
    yield '    }'


def _names_of(noun: Noun) -> Iterable[str]:
    """Return the names of the fields that have attributes."""
    names = {**noun.shown, **noun.asked('post', 'put', 'patch')}
    return [each for each in names if each not in ('id', 'name')]


def _fields(noun: Noun) -> Iterator[str]:
    asked = noun.asked('post', 'put', 'patch')
    for name in re.findall(r'%\((\w+)\)s', noun.path):
        yield f'    {name}: str = uri({name!r})'
    if found := FOUND_BY.get(noun.name):
        by = f'{"alias" if "name" in asked else "name"}={found!r}'
        yield from _field('    name: str = ', noun.shown[found], [by])
    if isinstance(more := noun.schema['additionalProperties'], dict):
        yield from _field('    properties: dict[str, Any] = ', more, [])
    for name in _names_of(noun):
        yield from _attribute(noun, name, asked.get(name, {}))
    if 'Idempotency-Key' in noun.parameters('post', 'header'):
        yield "    idempotency_key: str = header('Idempotency-Key')"


def _attribute(noun: Noun, name: str, request: Schema) -> Iterator[str]:
    schema = noun.shown.get(name, {})
    type_ = _type(schema or request)
    if schema and name not in noun.required:
        type_ = f'{type_} | None'.replace('None | None', 'None')
    if type_ == 'int' and request.get('format') == 'lease-duration':
        type_ = 'str | int'
    kind = type_.partition('[')[0]
    more = []
    if kind in CONVERTED and 'string' not in request.get('type', ''):
        more.append(kind)
    if isinstance(schema.get('items'), Noun):
        more.append(f'list_type={schema["items"].name}')
    attribute = RENAMED.get(name, name)
    if attribute != name:
        more.append(f'name={name!r}')
    has_id = 'id' in noun.required or not noun.operations.keys() & {
        'put', 'patch'
    }
    if not has_id and name == next(iter(noun.shown)):
        more.append('alternate_id=True')
    yield from _field(
        f'    {attribute}: {type_} = ', request or schema, more,
        asked=bool(request),
    )


def _type(schema: Schema | Noun) -> str:
    """Return the type of a value in Python."""
    if isinstance(schema, Noun):
        return schema.name
    if 'enum' in schema:
        return 'str | None' if None in schema['enum'] else 'str'
    if schema.get('type') == 'array':
        return f'list[{_type(schema["items"])}]'
    more = schema.get('additionalProperties')
    if isinstance(more, dict) and 'type' in more:
        return f'dict[str, {_type(more)}]'
    types = schema.get('type', 'object')
    names = [types] if isinstance(types, str) else types
    return ' | '.join(TYPES[each] for each in names)


def _field(
    head: str, schema: Schema, more: list[str], tail: str = '',
    asked: bool = False,
) -> Iterator[str]:
    """Yield a field with its meaning, and how it is asked for."""
    first, *clauses = schema['description'].split('; ')
    meaning = '; '.join([first, *(
        each for each in clauses
        if asked and re.search('null means|left out', each)
    )])
    meaning = re.sub(r'\bnull\b', 'None', meaning)
    if asked and schema.get('format') in FORMS:
        more = [*more, f'form={FORMS[schema["format"]]!r}']
    if asked and not tail and 'enum' in schema:
        more = [*more, f'choices={tuple(schema["enum"])!r}']
    line = f'{head}body({", ".join([repr(meaning), *more])}){tail}'
    if len(line) < 80:
        yield line
        return
    head = f'{head}body('
    indent = len(head) - len(head.lstrip()) + 4
    # Beside the name, or below it: whatever is shorter.
    yield from min((
        [head, *_call(indent, meaning, more, tail)],
        [
            head + each.lstrip() if not n else each
            for n, each in enumerate(_call(len(head), meaning, more, tail))
        ],
    ), key=len)


def _call(
    width: int, meaning: str, more: list[str], tail: str
) -> list[str]:
    """Return the lines of the arguments, which begin after `width`."""
    *texts, last = textwrap.wrap(meaning, 76 - width)
    lines = [*(repr(f'{each} ') for each in texts), repr(last)]
    end = ', '.join(['', *more]) + f'){tail}'
    if width + len(lines[-1] + end) < 80:
        lines[-1] += end
    else:
        lines[-1] += ','
        lines.append(end.removeprefix(', '))
    return [' ' * width + each for each in lines]


def _sentence(text: str) -> str:
    """Return a text of the document as the line of a docstring."""
    text = re.sub(r'\bnull\b', 'None', text).rstrip('.')
    if len(text) > 64:
        text = re.split(', |; ', text)[0]
    return f'{text}.'


def _names(name: str, names: Iterable[str]) -> Iterator[str]:
    """Yield a tuple of names, unless there are none."""
    values = ', '.join(map(repr, names))
    comma = '' if ', ' in values else ','
    if len(f'    {name} = ({values}{comma})') > 79:
        yield f'    {name} = (\n{_filled(values, 8)},\n    )'
    elif values:
        yield f'    {name} = ({values}{comma})'


def _filled(text: str, indent: int) -> str:
    return textwrap.indent(textwrap.fill(text, 78 - indent), ' ' * indent)


def _methods(noun: Noun) -> Iterator[str]:
    """Yield the methods that all nouns have, as far as this noun has them."""
    name, one = noun.name, noun.one
    known, attrs = f'{one}: str | {name}', '**attrs: Any'
    dry_run = {
        method: 'dry_run' for method in noun.operations
        if 'dry_run' in noun.parameters(method)
    }

    def keywords(method: str, *more: str) -> list[str]:
        """Return the parameters that are keywords only."""
        if method in dry_run:
            return ['*', 'dry_run: bool = False', *more]
        return [*more]

    query = ['**query: Any'] if noun.parameters('list') else []
    yield from _method(
        noun, 'list', noun.many, query, f'Generator[{name}, None, None]',
        f'{name}.list(self{", **query" if query else ""})',
    )
    if noun.has_id('get'):
        yield from _method(
            noun, 'get', f'get_{one}', [known], name,
            f'self._get({name}, {one})',
        )
        yield from _method(
            noun, 'get', f'find_{one}',
            ['name_or_id: str', 'ignore_missing: bool = True'],
            f'{name} | None',
            f'self._find({name}, name_or_id, ignore_missing)',
        )
    yield from _method(
        noun, 'post', f'create_{one}', keywords('post', attrs), name,
        f'self._post({name}, {dry_run.get("post", False)}, attrs)',
    )
    yield from _method(
        noun, 'put', f'update_{one}', [known, *keywords('put', attrs)], name,
        f'self._put({name}, {one}, {dry_run.get("put", False)}, attrs)',
    )
    more = ', dry_run' if 'delete' in dry_run else ''
    yield from _method(
        noun, 'delete', f'delete_{one}',
        [known, 'ignore_missing: bool = True', *keywords('delete')], 'None',
        f'self._remove({name}, {one}, ignore_missing{more})',
    )


def _method(
    noun: Noun, operation: str, name: str, parameters: list[str],
    returns: str, does: str,
) -> Iterator[str]:
    if operation not in noun.operations or name in BY_HAND:
        return
    text = _sentence(noun.operations[operation]['summary'])
    text = re.sub('^Show ', 'Get ', text)
    if name.startswith('find_'):
        article = 'an' if noun.words[0] in 'aeiou' else 'a'
        has_name = 'name' in noun.shown or noun.name in FOUND_BY
        by = 'name or ID' if has_name else 'ID'
        text = f'Find {article} {noun.words} by its {by}.'
    line = ', '.join(['self', *parameters])
    if len(f'    def {name}({line}) -> {returns}:') > 79:
        # A parameter is on one line.
        line = _filled(re.sub('(?<!,) ', '\0', line), 8)
        line = f'\n{line}\n    '.replace('\0', ' ')
    yield f'\n    def {name}({line}) -> {returns}:'
    if '**query' in line:
        asked = ', '.join(f'`{each}`' for each in noun.parameters('list'))
        asked = _filled(f':param query: {asked}', 12).lstrip()
        text += f'\n\n        {asked}\n        '
    yield f'        """{text}"""'
    yield f'        {"" if returns == "None" else "return "}{does}'


if __name__ == '__main__':
    file = pathlib.Path(sys.argv[1]) if sys.argv[1:] else FILE
    file.write_text(module(openapi.document(
        routes.ROUTES, microversion.KNOWN[-1]
    )))
