"""Index expressions, access patterns and tensor views of a kernel."""
