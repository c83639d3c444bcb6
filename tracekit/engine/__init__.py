"""What analyses are built on: loading, interval algebra, derived tables, and the runner that orders them."""
