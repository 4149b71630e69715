# SPDX-License-Identifier: Apache-2.0
"""Numbers of things, in the words of a message."""


def counted(count: int, noun: str) -> str:
    """Return '1 host' or '2 hosts'."""
    return f'{count} {noun}' if count == 1 else f'{count} {noun}s'


def are(count: int, noun: str) -> str:
    """Return '1 host is' or '2 hosts are'."""
    return f'{counted(count, noun)} {is_or_are(count)}'


def is_or_are(count: int) -> str:
    return 'is' if count == 1 else 'are'
