"""Third-party test suites, applied to the hardware and to golden."""
