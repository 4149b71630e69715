# SPDX-License-Identifier: Apache-2.0
"""IP addresses, in the only form in which the ledger has them."""

import ipaddress

from blazar_sched.domain import exception


def parse(text: object, field: str) -> str:
    """Return an IPv4 or IPv6 address in the only form in which it is stored.

    :raises InvalidInput: naming `field`, if the text is not an IP address
    """
    if isinstance(text, str) and '%' not in text:
        try:
            return ipaddress.ip_address(text).compressed
        except ValueError:
            pass
    raise exception.InvalidInput(
        f'{str(text)[:64]!r} is not an IP address', field=field
    )
