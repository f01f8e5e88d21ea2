"""The page of a run, report.html: result, causes of cycles, timeline and memory in one file for a web browser."""
