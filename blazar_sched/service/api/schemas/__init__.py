# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of request bodies, one file per noun.

Names, limits and defaults are written out here, apart from those of the
domain, because the API must not change when the domain changes.
"""
