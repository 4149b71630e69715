# SPDX-License-Identifier: Apache-2.0
"""The ledger: the only package that uses SQL."""
