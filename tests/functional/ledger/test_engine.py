# SPDX-License-Identifier: Apache-2.0
"""The URL of a database: its driver, and what is told if it is missing."""

import pytest

from blazar_sched.service.ledger import engine

URL = '://user:hush@host/name'


@pytest.fixture
def installed(monkeypatch):
    """installed('psycopg2') -> only these modules are installed."""

    def only(*names):
        monkeypatch.setattr(
            engine.importlib.util, 'find_spec',
            lambda name: name if name in names else None,
        )

    return only


@pytest.mark.parametrize('url, modules, driver', [
    ('postgresql', ['psycopg2'], 'postgresql+psycopg2'),
    ('postgresql', ['psycopg', 'psycopg2'], 'postgresql+psycopg2'),
    ('postgresql', ['psycopg'], 'postgresql+psycopg'),
    ('mysql', ['pymysql'], 'mysql+pymysql'),
    ('mysql', ['MySQLdb'], 'mysql+mysqldb'),
    ('mariadb', ['pymysql'], 'mariadb+pymysql'),
    ('mariadb+mysqldb', ['pymysql'], 'mariadb+mysqldb'),
    ('sqlite', [], 'sqlite'),
])
def test_the_driver_that_is_installed_is_used(installed, url, modules, driver):
    installed(*modules)
    found = engine.with_driver(url + URL)
    assert found.render_as_string(hide_password=False) == driver + URL


@pytest.mark.parametrize('url, extra, driver', [
    ('postgresql', 'postgresql', 'psycopg2'),
    ('mysql', 'mysql', 'pymysql'),
    ('mariadb', 'mysql', 'pymysql'),
])
def test_a_missing_driver_is_named_with_what_to_write(
    installed, url, extra, driver
):
    installed()
    with pytest.raises(ValueError) as refused:
        engine.create(url + URL)
    text = str(refused.value)
    assert f'no module named {driver}' in text
    assert f"pip install '.[{extra}]'" in text
    assert f'{extra}+{driver}://' in text
    assert 'hush' not in text


def test_a_plugin_is_not_taken_for_a_driver():
    pytest.importorskip('pymysql')
    with pytest.raises(ValueError) as refused:
        engine.create(f'mysql{URL}?charset=utf8mb4&plugin=dbcounter')
    text = str(refused.value)
    assert 'remove plugin=dbcounter from the URL' in text
    assert 'DevStack' in text
    assert 'driver' not in text and 'hush' not in text
