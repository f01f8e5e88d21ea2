"""The profile of a run of an image: records in time, what they waited for, and the files and pictures that show it."""
