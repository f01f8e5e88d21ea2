"""Profiles: records of a run in time, causes of stalls, and files and pictures."""
