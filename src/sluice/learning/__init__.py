"""What policies learn with: Gaussian processes, flow models, forecasts, instance sizes and plans over a horizon."""
