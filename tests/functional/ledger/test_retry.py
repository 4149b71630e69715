# SPDX-License-Identifier: Apache-2.0
"""Each error that the drivers of the databases know: again, or a refusal."""

import struct

import pytest
from sqlalchemy import exc

from blazar_sched.service.ledger import retry

# What psycopg2 calls an InternalError: the server is a standby, or has ended a
# transaction that was idle, or took too long.
STANDBY_OR_ENDED = {'25006', '25P03', '25P04'}


def outcome(orig, base):
    """Return what a transaction with an error ends with, and its runs."""
    runs = []

    def attempt():
        runs.append(1)
        raise exc.DBAPIError.instance('SELECT', {}, orig, base)

    with pytest.raises(Exception) as raised:
        retry.call(attempt, 2, lambda seconds: None)
    return type(raised.value).__name__, len(runs)


def mysql(number):
    """Return the error that PyMySQL makes of an answer of the server."""
    from pymysql import err
    with pytest.raises(err.MySQLError) as raised:
        err.raise_mysql_exception(
            b'\xff' + struct.pack('<h', number) + b'#HY000refused'
        )
    return raised.value


def postgresql(code):
    """Return the error that psycopg2 makes of an answer of the server."""
    from psycopg2 import errors
    return type('Error', (errors.lookup(code),), {'pgcode': code})('refused')


def of_mysql():
    """Return PyMySQL's table of the server's errors, by their names."""
    from pymysql.constants import ER
    return {
        name: number for name, number in vars(ER).items()
        if name.isupper() and number > 1
    }


def of_postgresql():
    """Return the codes of psycopg2's table that name a class of errors."""
    from psycopg2 import errorcodes
    from psycopg2 import errors

    def is_known(code):
        try:
            return errors.lookup(code)
        except KeyError:
            return None

    return {
        code for name, code in vars(errorcodes).items()
        if name.isupper() and len(code) == 5 and is_known(code)
    }


def test_of_mysql_only_operation_is_tried_again():
    pymysql = pytest.importorskip('pymysql')
    table = of_mysql()
    assert len(table) > 400
    denied = {
        number for name, number in table.items()
        if 'ACCESS_DENIED' in name or name == 'BAD_DB_ERROR'
    }
    for number in {*table.values(), 3, 1969, 3024, 9999}:
        error = mysql(number)
        is_of_operation = isinstance(
            error, pymysql.OperationalError | pymysql.InternalError
        )
        assert outcome(error, pymysql.Error) == (
            ('DatabaseAccessDenied', 1) if number in denied
            else ('Unavailable', 3) if is_of_operation
            else (type(error).__name__, 1)
        ), number


def test_of_the_client_of_mysql_everything_is_tried_again():
    pymysql = pytest.importorskip('pymysql')
    from pymysql.constants import CR
    for name, number in vars(CR).items():
        if name.isupper():
            error = pymysql.OperationalError(number, 'lost')
            assert outcome(error, pymysql.Error) == ('Unavailable', 3), name
    torn = pymysql.InternalError('Packet sequence number wrong')
    assert outcome(torn, pymysql.Error) == ('Unavailable', 3)


def test_of_postgresql_only_operation_is_tried_again():
    psycopg2 = pytest.importorskip('psycopg2')
    table = of_postgresql()
    assert len(table) > 200
    for code in table:
        error = postgresql(code)
        is_of_operation = code in STANDBY_OR_ENDED or (
            isinstance(error, psycopg2.OperationalError)
        )
        assert is_of_operation or code[:2] not in ('08', '53', '57', '58')
        found = outcome(error, psycopg2.Error)
        if code[:2] == '28' or code == '42501':
            assert found == ('DatabaseAccessDenied', 1), code
        elif is_of_operation:
            assert found == ('Unavailable', 3), code
        else:
            assert found[1] == 1 and found[0] != 'Unavailable', code


@pytest.mark.parametrize('code', ['25006', '53100', '57014', '58030'])
def test_a_driver_with_sqlstates_is_understood_too(code):
    """psycopg, the successor of psycopg2, names its codes differently."""
    error = type('Error', (Exception,), {'sqlstate': code})('refused')
    assert retry.is_not_now(exc.OperationalError('SELECT', {}, error))


def test_control_what_is_not_known_is_no_error_of_the_program(monkeypatch):
    """The control: a list of known codes alone misses the others."""
    pymysql = pytest.importorskip('pymysql')
    monkeypatch.setattr(retry, 'is_not_now', retry.is_conflict)
    missed = [
        name for name, number in of_mysql().items()
        if outcome(mysql(number), pymysql.Error)[0] == 'OperationalError'
    ]
    assert len(missed) > 300
