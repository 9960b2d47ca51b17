"""What policies share: rates along the graph, bottlenecks, targets."""
