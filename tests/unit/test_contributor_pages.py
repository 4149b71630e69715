# SPDX-License-Identifier: Apache-2.0
"""Each name and each path on the contributors' pages is in the tree.

A name in back-quotes has a dot, as in ``replica.puller`` or ``Lease.ending``,
and may leave out what comes before. A path has a slash or the suffix of a
source file, and may be followed by the names of a test.
"""

import ast
import functools
import importlib.metadata
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = ROOT / 'doc/source/contributor'
PAGES = [ROOT / 'CONTRIBUTING.rst', *sorted(GUIDE.glob('*.md'))]
FOLDERS = (
    'benchmarks', 'blazar_sched', 'client', 'cython_src', 'devstack', 'doc',
    'etc', 'releasenotes', 'tests',
)
# What the pages name of others, or what is made when the pages are built.
OTHERS = {'HostState.instances', 'doc/build/html', 'lease.degraded'}
MADE_UP = 'made_up_by_nobody'


def endings(name, mark):
    """Return a name without its first part, without its first two, and so on.
    """
    parts = name.split(mark)
    return {mark.join(parts[n:]) for n in range(len(parts))}


def members(body):
    """Yield the names that the statements of a module or a class define."""
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f'{node.name}.{m}' for m in members(node.body))
            yield from (
                f'{node.name}.{part.attr}' for part in ast.walk(node)
                if isinstance(part, ast.Attribute)
                and isinstance(part.ctx, ast.Store)
            )
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in getattr(node, 'targets', [getattr(
                node, 'target', None
            )]):
                yield ast.unparse(target)


@functools.cache
def definitions(path):
    return frozenset(members(ast.parse(path.read_text()).body))


@functools.cache
def paths():
    """Return the endings of the paths of all files and folders."""
    return {
        ending
        for folder in FOLDERS
        for path in (ROOT / folder, *(ROOT / folder).rglob('*'))
        for ending in endings(path.relative_to(ROOT).as_posix(), '/')
    } | {path.name for path in ROOT.iterdir()} | {'.ci/run'}


@functools.cache
def names():
    """Return the endings of the names of all modules and definitions."""
    found = set(importlib.metadata.entry_points().groups)
    for folder in ('blazar_sched', 'tests', 'cython_src/blazar_sched'):
        for path in (ROOT / folder).rglob('*.py*'):
            module = path.relative_to(ROOT).with_suffix('')
            dotted = '.'.join(module.parts).removeprefix('cython_src.')
            found |= endings(dotted, '.')
            found |= endings(dotted.rpartition('.')[0], '.')
            if path.suffix == '.py' and folder == 'blazar_sched':
                for name in definitions(path):
                    found |= endings(f'{dotted}.{name}', '.')
    return found


def is_there(literal):
    path, *test = literal.split('::')
    if literal in OTHERS:
        return True
    if test:
        file = ROOT / path
        return file.is_file() and '.'.join(test) in definitions(file)
    if '/' in path or re.search(r'\.(md|pxd|py|pyx|rst)$', path):
        return path in paths()
    return re.sub(r'\(.*\)$', '', path) in names()


def unknown(text):
    """Return the names and paths in back-quotes that are not in the tree."""
    literals = set(re.findall(
        r'`((?=[^`]*[./])[A-Za-z_.][\w./:-]*(?:\([^`]*\))?)`', text
    ))
    return sorted(
        each for each in literals
        if not re.search(r'\.(conf|toml|txt)$|^\.\w+$', each)
        and not is_there(each)
    )


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_each_name_on_a_page_is_in_the_tree(page):
    assert unknown(page.read_text()) == []


def test_a_name_that_is_not_in_the_tree_is_found():
    made_up = [
        f'Ledger.{MADE_UP}', f'replica.{MADE_UP}', f'tests/{MADE_UP}.py',
        f'tests/unit/test_contributor_pages.py::{MADE_UP}', f'{MADE_UP}.py',
    ]
    here = 'tests/unit/test_contributor_pages.py'
    text = ' '.join(f'`{each}`' for each in [
        *made_up, here, f'{here}::MADE_UP', 'replica.puller', 'Puller.ahead',
    ])
    assert unknown(text) == sorted(made_up)


def test_each_package_of_the_architecture_is_in_the_tree():
    text = (GUIDE / 'architecture.md').read_text()
    packages = re.findall(r'^ +(\w+)/ ', text, re.M)
    assert len(packages) > 20
    assert [each for each in packages if each not in paths()] == []


def rows(text):
    return re.findall(r'(?m)^\| (?!promise|row|cause|mutant|-)(.+) \|$', text)


@pytest.mark.parametrize('page', ['defects.md', 'promises.md'])
def test_each_row_of_a_table_names_a_test(page):
    """The rows are promises and causes of defects; test_rows has numbers."""
    table = rows((GUIDE / page).read_text())
    assert len(table) > 20
    named = re.compile(r'`tests/|(^|\| )[CF]\d+\b')
    assert [row for row in table if not named.search(row)] == []
