"""Campaigns: many runs on local or remote workers, with a store of results."""
