# SPDX-License-Identifier: Apache-2.0
"""The requirement language: its meaning and its errors."""

import fractions
import json
import re

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.requirements import Combination

FIELD = 'resource_properties'

HOST = {
    'vcpus': '16', 'memory_mb': '131072', 'load': '0.30', 'gpu': 'a100',
    'serial': '1e5', 'empty': '', 'trait:HW_GPU': 'required',
}


def matches(tree, properties=HOST):
    return requirements.parse(json.dumps(tree), FIELD).matches(properties)


@pytest.mark.parametrize('nothing', ['', None, [], '[]'])
def test_empty_requirement_matches_every_host(nothing):
    requirement = requirements.parse(nothing, FIELD)
    assert requirement.matches({})
    assert requirement.names() == set()


@pytest.mark.parametrize('operator, value, expected', [
    ('==', '16', True),
    ('=', '16', True),
    ('==', '8', False),
    ('!=', '8', True),
    ('!=', '16', False),
    ('>=', '16', True),
    ('>=', '17', False),
    ('<=', '16', True),
    ('<=', '15', False),
    ('>', '15', True),
    ('>', '16', False),
    ('<', '17', True),
    ('<', '16', False),
])
def test_operators(operator, value, expected):
    assert matches([operator, '$vcpus', value]) is expected
    assert matches([operator, '$vcpus', int(value)]) is expected


@pytest.mark.row('F13')
@pytest.mark.parametrize('tree, expected', [
    # As text '16' < '9'.
    (['>', '$vcpus', '9'], True),
    (['==', '$vcpus', '16.0'], True),
    (['==', '$vcpus', '016'], True),
    # 0.1 + 0.2 is not 0.3 in floats; here 0.30 is 0.3.
    (['==', '$load', 0.3], True),
    (['<', '$load', '0.30000000000000000001'], True),
    # One side is not a number: the texts are compared for equality only.
    (['==', '$gpu', 8], False),
    (['!=', '$gpu', 8], True),
    (['>', '$gpu', 8], False),
    (['<', '$gpu', 8], False),
    (['>=', '$vcpus', 'a100'], False),
    # Two texts are ordered as text.
    (['>', '$gpu', 'a'], True),
    (['<', '$gpu', 'b'], True),
    # Numbers have no exponent; nan, inf, other digits and spaces are text.
    (['==', '$serial', '100000'], False),
    (['==', '$serial', '1e5'], True),
    (['<', '$vcpus', 'inf'], False),
    (['!=', '$vcpus', 'nan'], True),
    (['==', '$vcpus', '١٦'], False),
    (['==', '$vcpus', ' 16'], False),
    (['==', '$empty', ''], True),
])
def test_numbers_and_text(tree, expected):
    assert matches(tree) is expected


@pytest.mark.parametrize('operator', ['==', '=', '!=', '>=', '<=', '>', '<'])
def test_a_lacking_property_never_compares(operator):
    assert not matches([operator, '$lacking', '1'])
    assert not matches(['in', '$lacking', '1'])
    assert matches(['not', [operator, '$lacking', '1']])


@pytest.mark.parametrize('tree, expected', [
    (['in', '$gpu', 'v100', 'a100'], True),
    (['in', '$vcpus', 8, 16], True),
    (['in', '$gpu', 'v100'], False),
    (['not', ['in', '$gpu', 'v100']], True),
])
def test_operator_in(tree, expected):
    assert matches(tree) is expected


def test_blazar_form():
    tree = ['and', ['>=', '$vcpus', '8'], ['=', '$gpu', 'a100']]
    assert matches(tree)
    assert not matches(tree, {**HOST, 'gpu': 'v100'})
    assert not matches(tree, {**HOST, 'vcpus': '4'})


@pytest.mark.row('F12')
def test_nested_requirement():
    tree = [
        'and',
        ['or', ['==', '$gpu', 'h100'], ['==', '$gpu', 'a100']],
        ['not', ['<', '$vcpus', 8]],
        ['and', ['>', '$memory_mb', 65536]],
    ]
    assert matches(tree)
    assert not matches(tree, {**HOST, 'gpu': 'v100'})
    assert not matches(tree, {**HOST, 'vcpus': '4'})
    assert not matches(tree, {**HOST, 'memory_mb': '65536'})


@pytest.mark.row('C20')
def test_scoped_and_unscoped_names_are_the_same():
    scoped = requirements.parse('["==","$capabilities:gpu","a100"]', FIELD)
    plain = requirements.parse('["==","$gpu","a100"]', FIELD)
    assert scoped == plain
    assert scoped.names() == {'gpu'}
    assert scoped.matches(HOST)


def test_another_scope_is_part_of_the_name():
    tree = ['==', '$trait:HW_GPU', 'required']
    assert matches(tree)
    assert not matches(tree, {'HW_GPU': 'required'})


def test_all_of_keeps_both_requirements():
    both = requirements.all_of(
        requirements.parse('[">=","$vcpus","8"]', 'hypervisor_properties'),
        requirements.parse('["==","$gpu","a100"]', FIELD),
    )
    assert both.matches(HOST)
    assert not both.matches({**HOST, 'vcpus': '4'})
    assert not both.matches({**HOST, 'gpu': 'v100'})
    assert both.names() == {'vcpus', 'gpu'}


MALFORMED = [
    ('{', 'not JSON'),
    ('["==", "$a", "1"] x', 'not JSON'),
    ('null', 'list'),
    ('"$a"', 'list'),
    ('3', 'list'),
    ('{"==": ["$a", "1"]}', 'list'),
    ('[["==", "$a", "1"]]', 'operator'),
    ('["nand", ["==", "$a", "1"]]', 'nand'),
    ('["__class__", "$a", "1"]', '__class__'),
    ('["==", "$a"]', 'number of parts'),
    ('["==", "$a", "1", "2"]', 'number of parts'),
    ('["in", "$a"]', 'number of parts'),
    ('["and"]', 'number of parts'),
    ('["or"]', 'number of parts'),
    ('["not"]', 'number of parts'),
    ('["not", ["==", "$a", "1"], ["==", "$a", "2"]]', 'number of parts'),
    ('["and", "$a", "1"]', 'list'),
    ('["and", ["==", "$a", "1"], []]', 'list'),
    ('["==", "a", "1"]', '$name'),
    ('["==", 1, "1"]', '$name'),
    ('["==", "$", "1"]', 'empty name'),
    ('["==", "$capabilities:", "1"]', 'empty name'),
    ('["==", "$a", null]', 'text or a number'),
    ('["==", "$a", true]', 'where it has true: write "true", in quotes'),
    ('["in", "$a", "b", false]', 'false: write "false", in quotes'),
    ('["==", "$a", ["1"]]', 'text or a number'),
    ('["==", "$a", {"b": 1}]', 'text or a number'),
    ('["==", "$a", NaN]', 'NaN'),
    ('["==", "$a", Infinity]', 'Infinity'),
    ('["==", "$a", -Infinity]', '-Infinity'),
    ('["==", "$a", 1e999]', '1e999'),
    ('["==", "$a", ' + '9' * 5000 + ']', 'must have only digits'),
]


@pytest.mark.parametrize('text, what', MALFORMED)
def test_malformed_text_is_refused(text, what):
    with pytest.raises(exception.InvalidInput) as caught:
        requirements.parse(text, FIELD)
    assert caught.value.field == FIELD
    assert FIELD in str(caught.value)
    assert what in str(caught.value)
    # The message must not repeat a long requirement.
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize('tree', [
    3,
    {'a': 1},
    ('==', '$a', '1'),
    b'["==", "$a", "1"]',
    [['=='], '$a', '1'],
    [None],
    ['==', '$a', float('nan')],
    ['==', '$a', float('inf')],
    ['==', '$a', 10**5000],
    ['==', '$a', True],
    ['==', '$a', object()],
])
def test_a_malformed_list_is_refused(tree):
    with pytest.raises(exception.InvalidInput) as caught:
        requirements.parse(tree, FIELD)
    assert caught.value.field == FIELD


LEAF = ['==', '$a', '1']


def nested(depth):
    tree = LEAF
    for _ in range(depth - 1):
        tree = ['not', tree]
    return tree


def test_depth_limit():
    deepest = nested(requirements.MAX_DEPTH)
    assert requirements.parse(json.dumps(deepest), FIELD).names() == {'a'}
    too_deep = ['not', deepest]
    for given in (too_deep, json.dumps(too_deep)):
        with pytest.raises(exception.InvalidInput, match='deeper'):
            requirements.parse(given, FIELD)


@pytest.mark.parametrize('brackets', ['[' * 10000, '[' * 10000 + ']' * 10000])
def test_no_recursion_error_from_deep_text(brackets):
    with pytest.raises(exception.InvalidInput) as caught:
        requirements.parse(brackets, FIELD)
    assert caught.value.field == FIELD


def test_a_list_inside_itself_is_refused():
    tree = ['and']
    tree += [tree, tree]
    with pytest.raises(exception.InvalidInput):
        requirements.parse(tree, FIELD)


def test_a_text_is_read_once_however_often_it_is_needed(monkeypatch):
    text = json.dumps(['==', '$gpu', 'of a series'])
    known = requirements.parse(text, FIELD)
    requirements.check_together([text], FIELD)
    monkeypatch.setattr(requirements, '_load', lambda *args: pytest.fail())
    assert requirements.parse(text, FIELD) is known
    requirements.check_together([text], FIELD)


def test_part_limit():
    # The list, its operator and its name are parts too.
    values = [str(n) for n in range(requirements.MAX_NODES - 3)]
    full = ['in', '$a', *values]
    assert requirements.parse(full, FIELD).matches({'a': values[-1]})
    with pytest.raises(exception.InvalidInput, match='parts'):
        requirements.parse([*full, 'more'], FIELD)


def test_length_limit():
    long = 'x' * (requirements.MAX_LENGTH - len('==$a'))
    full = requirements.parse(['==', '$a', long], FIELD)
    assert full.matches({'a': long})
    for given in (['==', '$a', long + 'x'], json.dumps(['==', '$a', long])):
        with pytest.raises(exception.InvalidInput, match='longer'):
            requirements.parse(given, FIELD)


# The reference evaluates the parsed tree directly.

def as_number(value):
    text = str(value)
    if re.fullmatch(r'-?[0-9]+(\.[0-9]+)?', text, re.ASCII):
        return fractions.Fraction(text)
    return None


ORDERINGS = ('>=', '<=', '>', '<')


def naive_pair(operator, held, value):
    left, right = as_number(held), as_number(value)
    if (left is None) != (right is None) and operator in ORDERINGS:
        return False
    if left is None or right is None:
        left, right = held, str(value)
    return {
        '=': left == right, '==': left == right, '!=': left != right,
        '>=': left >= right, '<=': left <= right, '>': left > right,
        '<': left < right,
    }[operator]


def naive(tree, properties):
    operator = tree[0]
    if operator == 'and':
        return all(naive(part, properties) for part in tree[1:])
    if operator == 'or':
        return any(naive(part, properties) for part in tree[1:])
    if operator == 'not':
        return not naive(tree[1], properties)
    name = tree[1][1:]
    if name.startswith('capabilities:'):
        name = name[len('capabilities:'):]
    if name not in properties:
        return False
    if operator == 'in':
        return any(naive_pair('==', properties[name], v) for v in tree[2:])
    return naive_pair(operator, properties[name], tree[2])


def leaves(tree):
    if tree[0] in ('and', 'or', 'not'):
        return [leaf for part in tree[1:] for leaf in leaves(part)]
    return [tree]


def comparisons(requirement):
    if isinstance(requirement, Combination):
        return [c for part in requirement.parts for c in comparisons(part)]
    return [requirement]


NAMES = st.sampled_from(['a', 'b', 'c', 'capabilities:a', 'other:a'])
TEXTS = st.sampled_from(
    ['', 'x', 'y', '8', '8.0', '08', '-3', '10', '1e1', 'nan', '٣', '7.5']
)
VALUES = TEXTS | st.integers(-20, 20) | st.sampled_from([0.1, 7.5, -3.0])
COMPARISONS = st.builds(
    lambda operator, name, value: [operator, '$' + name, value],
    st.sampled_from(['==', '=', '!=', '>=', '<=', '>', '<']), NAMES, VALUES,
) | st.builds(
    lambda name, values: ['in', '$' + name, *values], NAMES,
    st.lists(VALUES, min_size=1, max_size=3),
)
TREES = st.recursive(
    COMPARISONS,
    lambda parts: st.builds(
        lambda operator, some: [operator, *some],
        st.sampled_from(['and', 'or']), st.lists(parts, min_size=1, max_size=4)
    )
    | parts.map(lambda part: ['not', part]),
    max_leaves=12
)
PROPERTIES = st.dictionaries(st.sampled_from(['a', 'b', 'other:a']), TEXTS)


@hypothesis.settings(max_examples=500, deadline=None)
@hypothesis.given(TREES, PROPERTIES, st.booleans())
def test_requirements_match_as_a_naive_evaluation(tree, properties, as_text):
    requirement = requirements.parse(
        json.dumps(tree) if as_text else tree, FIELD
    )
    assert requirement.matches(properties) is naive(tree, properties)


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(TREES)
def test_nesting_drops_nothing(tree):
    requirement = requirements.parse(tree, FIELD)
    found = comparisons(requirement)
    assert [(c.operator, len(c.values)) for c in found] == [
        (leaf[0], len(leaf) - 2) for leaf in leaves(tree)
    ]
    assert requirement.names() == {
        leaf[1][1:].removeprefix('capabilities:') for leaf in leaves(tree)
    }


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(['and', 'or', 'not', 'in', '==', '<', '$a', '$']),
    lambda parts: st.lists(parts, max_size=4)
    | st.dictionaries(st.text(max_size=3), parts, max_size=2),
)


@hypothesis.settings(max_examples=500, deadline=None)
@hypothesis.given(JUNK.map(json.dumps) | st.text(max_size=40) | JUNK)
def test_junk_is_read_or_refused_by_name(junk):
    try:
        requirement = requirements.parse(junk, FIELD)
    except exception.InvalidInput as e:
        assert e.field == FIELD
    else:
        assert requirement.matches({'a': '1'}) in (True, False)


@hypothesis.given(
    st.lists(st.sampled_from(
        ['1', '1.0', '01', '-0', '0', '1e5', '', 'a', 'A', '0.10', '0.1']
    ), min_size=1),
    st.sampled_from(['1', '1.0', '0', '0.1', 'a', '', '1e5', '100000']),
)
def test_in_is_equality_with_any(values, held):
    properties = {'a': held}
    assert matches(['in', '$a', *values], properties) == any(
        matches(['==', '$a', value], properties) for value in values
    )
