# SPDX-License-Identifier: Apache-2.0
"""Enforcement of the operator's limits on leases, by filters.

`base` has the base class of filters, and the other modules have one filter
each; `filters` loads those that are enabled, and `admission` asks them.
An administrator can lift the limits of approval filters for a held offer.
"""
