# SPDX-License-Identifier: Apache-2.0
"""Numbers of things are read as in plain English."""

import pytest

from blazar_sched.domain import plural


@pytest.mark.parametrize('count, text', [
    (0, '0 hosts are'), (1, '1 host is'), (2, '2 hosts are'),
])
def test_count_and_verb_agree(count, text):
    assert plural.are(count, 'host') == text
    assert plural.counted(count, 'host') == text.rpartition(' ')[0]
