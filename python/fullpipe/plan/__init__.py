"""Plans: scenarios resolved to the integers that engines read, and questions about them."""
