# SPDX-License-Identifier: Apache-2.0
"""The page of troubleshooting has a row for each line of trouble in the log.

A text in asterisks covers the lines of the log that begin with it, where … is
anything that the program inserts.
"""

import ast
import importlib
import inspect
from pathlib import Path
import re

import blazar_sched
from blazar_sched.domain import exception
from blazar_sched.service.api import errors

PACKAGE = Path(blazar_sched.__file__).parent
PAGE = Path('doc/source/admin/troubleshooting.rst')
LEVELS = {'warning', 'error', 'exception', 'critical'}
FORMAT = re.compile(r'%[-#0-9.]*[a-z]')


def texts(node, module):
    """Yield the texts that the argument of a call can be."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            yield ''.join(
                v.value if isinstance(v, ast.Constant) else '%s'
                for v in values
            )
        case ast.BinOp(left=left):
            yield from texts(left, module)
        case ast.IfExp(body=body, orelse=other):
            yield from texts(body, module)
            yield from texts(other, module)
        case ast.Name(id=name) if name.isupper():
            yield getattr(module, name)
        case _:
            yield None


def lines_of(path):
    """Yield (where, text) of each line of trouble; the text may be None."""
    tree = ast.parse(path.read_text())
    name = '.'.join(path.relative_to(PACKAGE.parent).with_suffix('').parts)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and ast.unparse(node.func.value) in ('LOG', 'log')
        ):
            module = importlib.import_module(name)
            for text in texts(node.args[0], module):
                yield f'{name}:{node.lineno}', text


def shown(text):
    return FORMAT.sub('…', text).replace('%%', '%')


def covered():
    """Return the texts in asterisks on the page, without single words."""
    found = re.findall(r'\*(?! )([^*]+)(?<! )\*', PAGE.read_text())
    texts = [re.sub(r'\s+', ' ', each) for each in found]
    return tuple(
        each for each in texts
        if ' ' in each and re.search(r'[A-Za-z]{4}', each)
    )


def test_each_line_of_trouble_has_a_row():
    lines = [each for path in PACKAGE.rglob('*.py') for each in lines_of(path)]
    assert len(lines) > 60
    assert [where for where, text in lines if text is None] == []
    assert [
        (where, shown(text)) for where, text in lines
        if not shown(text).startswith(covered())
    ] == []


def test_each_server_error_has_a_row():
    of_domain = {
        name for name, each in inspect.getmembers(exception, inspect.isclass)
        if issubclass(each, exception.BlazarSchedError) and each.status >= 500
    } - {'BlazarSchedError'}
    of_api = {name for status, name in errors.NAMES.items() if status >= 500}
    assert {'InternalError', 'Unavailable', 'NotUpgraded'} <= (
        of_domain | of_api
    )
    page = PAGE.read_text()
    assert [n for n in of_domain | of_api if f'``{n}``' not in page] == []
