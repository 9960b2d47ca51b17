"""Many runs that differ in one thing at a time: the grid, who runs it, and what it comes to."""
