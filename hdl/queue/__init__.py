"""Queues, semaphores, record fetch, boot and watchdog."""
