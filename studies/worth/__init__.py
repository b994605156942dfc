"""What values, efforts and worth bring, and what they promise."""
