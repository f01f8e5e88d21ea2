"""What others have written to tell right from wrong, applied to the hardware and to golden."""
