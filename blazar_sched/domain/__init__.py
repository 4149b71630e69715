# SPDX-License-Identifier: Apache-2.0
"""The rules of reservations, with no I/O.

Each module holds one noun. No module reads a clock, a database or a service:
`now` is an argument, in whole seconds since 1970 UTC.
"""
