# SPDX-License-Identifier: Apache-2.0
"""What the lanes of a timeline index hold, second by second."""


def in_use(index, hosts, until):
    """Return the sums of all lanes of these hosts at each second from 0 on."""
    rows = index.rows(hosts)
    return [index.peak(rows, at, at + 1).tolist() for at in range(until)]
