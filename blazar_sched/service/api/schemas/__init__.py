# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of request bodies, one file a noun.

Names, limits and defaults are written out here, apart from the domain's: the
API must not change because a noun did.
"""
