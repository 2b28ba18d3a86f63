"""Results: the explanation, its file, and its forms for other programs."""
