# SPDX-License-Identifier: Apache-2.0
"""What lives in each nova-scheduler process, beside its filters and weighers.

A replica that follows the ledger, what is asked of it, and what was decided.
"""
