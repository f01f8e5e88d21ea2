"""Assembly text of records, and the generated instruction reference."""
